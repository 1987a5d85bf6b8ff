"""The kind of host that is a node of a Kubernetes cluster."""
