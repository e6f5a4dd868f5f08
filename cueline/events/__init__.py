"""The facts of a log: their classes, names and encoding, and the port of the log."""
