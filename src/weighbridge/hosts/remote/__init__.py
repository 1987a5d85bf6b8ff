"""Our end of a host that has an agent: the stream to it, and the host, processes and sockets by that."""
