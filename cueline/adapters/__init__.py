"""Adapters for other frameworks; each has an extra, and nothing in cueline imports it."""
