"""The provider of machines for fleets that uses the nodes of a cluster."""
