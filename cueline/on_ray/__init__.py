"""Wires the parts on Ray; `inline` does it in one process."""
