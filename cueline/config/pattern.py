"""Texts that have a form of their own, and how that is said."""

NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
URL = r"^https?://[^/@\s]+(/\S*)?$"
"""Without a user or a password: it is recorded."""
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""The name of an environment variable; what holds a secret by mistake seldom reads like one."""

MEANINGS = {
    NAME: "a name: at most 64 letters, digits, dots, dashes and underscores",
    URL: "an address: like https://host/path, without a user or a password",
    VARIABLE: "the name of a variable: letters, digits and underscores",
}
