"""The mechanisms of isolation that explain its costs, a module each."""
