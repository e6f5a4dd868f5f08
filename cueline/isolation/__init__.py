"""Runs commands where they reach nothing but their workspace: namespaces, a filter, limits."""
