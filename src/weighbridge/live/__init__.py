"""The run as it goes on, for who watches it from outside."""
