"""Model providers: the vendors' models, and one that answers from a file."""
