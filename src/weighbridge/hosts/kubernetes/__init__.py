"""Nodes of a Kubernetes cluster as hosts, by the user's own kubectl."""
