"""The environments in a Kubernetes cluster."""
