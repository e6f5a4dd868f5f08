"""Who does it: plain async classes that take their collaborators as arguments."""
