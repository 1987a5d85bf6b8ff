"""The small static program that starts every measured program, and the local side of the stream to it."""
