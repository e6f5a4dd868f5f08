"""A model that answers from a TOML file."""
