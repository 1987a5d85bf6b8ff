"""The `weighbridge` command line, with one module per command.

Only this package catches `WeighbridgeError` and turns it into a message and an exit code.
"""
