"""The answers to the question about a call in doubt, as commands with their consequences."""

from cueline.cli.up_lookup import command
from cueline.client.pending import CHOICES
from cueline.events.log_url import LogUrl

_WORDS = {
    "happened": ("approve", "--happened"),
    "run_again": ("approve", "--run-again"),
    "do_not_run": ("deny",),
}
ASKED = "nobody knows whether this call took effect; answer with one of"


def answers(log: LogUrl, approval: str) -> list[dict[str, str]]:
    """Return each answer with its code, what follows from it, and the command that gives it.

    That it happened may take `--result TEXT`.
    """
    told = []
    for each in CHOICES:
        verb, *flags = _WORDS[each.resolution]
        way = command(log, verb, approval, *flags)
        told.append({"resolution": each.resolution, "then": each.then, "command": way})
    return told


def answer_lines(log: LogUrl, approval: str) -> list[str]:
    """Return each answer as a line to be pasted, with its consequence behind it."""
    said = answers(log, approval)
    width = max(len(each["command"]) for each in said)
    more = {"happened": " (--result TEXT)"}
    return [
        f"  {each['command']:{width}}  # {each['then']}{more.get(each['resolution'], '')}"
        for each in said
    ]
