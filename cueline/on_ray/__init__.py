"""Wires the factory on Ray; `inline` does it in one process."""
