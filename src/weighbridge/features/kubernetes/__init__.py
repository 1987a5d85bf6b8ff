"""Kubernetes clusters: nodes as hosts, pods as environments, their volumes, and nodes as machines of a fleet."""
