"""The first process of every site: a small static program of ours, and our end of the stream to it."""
