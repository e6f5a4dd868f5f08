"""What a session needs that goes on: all that it was recorded with, or tools that are accepted."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cueline.events.agent import AgentSpec, ToolSpec

ACCEPT = "--accept-changed-tools"
AcceptOption = Annotated[
    bool,
    typer.Option(
        ACCEPT, help="Go on with its tools as they are now, where they have changed since."
    ),
]


def accepted_tools(
    agent: "AgentSpec", log: Path, waived: Collection[str], way: str, *, accept: bool
) -> "tuple[ToolSpec, ...]":
    """Return the tools of *agent* that have changed, as they are now, where that is accepted.

    Raises:
        ToolChangedError: it is not; the message names the *way*, a command.
        ConfigError: it cannot run here (any more).
    """
    from cueline.errors import ToolChangedError
    from cueline.preflight import check_resumed

    try:
        return check_resumed(agent, log, waived=waived, accept_changed_tools=accept)
    except ToolChangedError as error:
        choice = f"put them back, or go on with them as they are now:\n  {way} {ACCEPT}"
        raise ToolChangedError(error.subject, f"{error.reason}; {choice}") from error
