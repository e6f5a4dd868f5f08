"""What a command says of its own accord, errors, warnings, bugs: without secrets (I11).

What comes from the log was cleaned before it was recorded.
"""

from typing import TYPE_CHECKING

import typer

from cueline.console.text import visible

if TYPE_CHECKING:
    from cueline.cli.outside import Outside


def hidden(text: str, outside: "Outside | None") -> str:
    """Return *text* without the providers' keys, and without what is known to be secret here."""
    from cueline.environment import HERE
    from cueline.events.clean import Redactor
    from cueline.secret import secret_names, secret_values

    named = secret_names(None) | (set() if outside is None else outside.secrets)
    return Redactor(secret_values(named, HERE)).redact(text)[0]


def say(text: str, outside: "Outside | None") -> None:
    """Say on stderr what may quote anything: no secret, and nothing that a terminal would obey."""
    typer.echo(visible(hidden(text, outside)), err=True)
