"""Hosts that are nodes of a Kubernetes cluster, reached through the user's own kubectl."""
