"""Patterns of texts, and their names in messages."""

NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
URL = r"^https?://[^/@\s]+(/\S*)?$"
"""Without user or password, because it is recorded."""
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""The name of an environment variable; a secret seldom matches it."""

MEANINGS = {
    NAME: "a name: at most 64 letters, digits, dots, dashes and underscores",
    URL: "an address: like https://host/path, without a user or a password",
    VARIABLE: "the name of a variable: letters, digits and underscores",
}
