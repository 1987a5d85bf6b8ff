"""The options and examples of every command. These modules import nothing that a command needs to run."""
