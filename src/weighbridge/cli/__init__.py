"""The `weighbridge` command line: the options in `commands`, and one module per command that does the work.

Only this package catches `WeighbridgeError` and turns it into a message and an exit code.
"""
