"""What is made of a userland: its archive and its root folder."""
