"""How it looks in a terminal: what happens, tables, and the question to a person."""
