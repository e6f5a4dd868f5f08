"""The answers to the question about a call in doubt, as commands with their consequences."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cueline.cli.up_lookup import command
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.deciders.session import SessionState

_WORDS = {
    "happened": ("approve", "--happened"),
    "run_again": ("approve", "--run-again"),
    "do_not_run": ("deny",),
}
ASKED = "nobody knows whether this call took effect; answer with one of"


def answers(log: LogUrl, approval: str) -> list[dict[str, str]]:
    """Return each answer with its code, the command that gives it, and what follows from it."""
    from cueline.client.pending import CHOICES

    return [
        {
            "resolution": each.resolution,
            "then": each.then,
            "command": command_for(log, approval, each.resolution),
        }
        for each in CHOICES
    ]


def command_for(log: LogUrl, approval: str, resolution: str) -> str:
    """Return the command that gives an answer; that it happened may take `--result TEXT`."""
    verb, *flags = _WORDS[resolution]
    return command(log, verb, approval, *flags)


def answer_lines(log: LogUrl, approval: str) -> list[str]:
    """Return each answer as a line to be pasted, with its consequence behind it."""
    said = answers(log, approval)
    width = max(len(each["command"]) for each in said)
    more = {"happened": " (--result TEXT)"}
    return [
        f"  {each['command']:{width}}  # {each['then']}{more.get(each['resolution'], '')}"
        for each in said
    ]


def doubts_document(state: "SessionState", log: LogUrl) -> list[dict[str, Any]]:
    """Return the open questions about calls in doubt, each with its answers."""
    return [{"approval": each, "answers": answers(log, each)} for each in _doubts(state)]


def _doubts(state: "SessionState") -> Iterator[str]:
    for call in state.open_calls:
        asked = call.approval
        if asked is not None and call.asking and asked.question == "did_it_happen":
            yield asked.id
