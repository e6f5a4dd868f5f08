"""The facts: their types, names and bytes, and the port of the log."""
