"""Adapters for other frameworks; each is imported by its user alone, and has an extra."""
