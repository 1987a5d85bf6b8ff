"""Weighbridge measures how much slower a program runs in a container, a sandbox or a virtual machine."""
