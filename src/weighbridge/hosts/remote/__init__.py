"""The local side of a host with an agent: the stream to the agent, and the host's processes, files and sockets."""
