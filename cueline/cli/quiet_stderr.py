"""Prints errors, warnings and tracebacks to stderr, without secrets (I11).

Texts from the log were cleaned before they were recorded.
"""

from typing import TYPE_CHECKING

import typer

from cueline.console.text import visible

if TYPE_CHECKING:
    from cueline.cli.settings_context import SettingsContext


def redact_stderr(text: str, outside: "SettingsContext | None") -> str:
    """Return *text* without the providers' keys, and without what is known to be secret here."""
    from cueline.agents.secret import secret_names, secret_values
    from cueline.config.environment import HERE
    from cueline.events.sanitize import Redactor
    from cueline.providers.key_store import KeyStore

    named = secret_names(None) | (set() if outside is None else outside.secrets)
    known = [*secret_values(named, HERE), *KeyStore(HERE).secrets()]
    return Redactor(known).redact(text)[0]


def print_redacted(text: str, outside: "SettingsContext | None") -> None:
    """Say on stderr what may quote anything: no secret, and nothing that a terminal would obey."""
    typer.echo(visible(redact_stderr(text, outside)), err=True)
