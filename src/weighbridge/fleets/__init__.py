"""One study on many machines: rounds of runs, each in a directory of its own."""
