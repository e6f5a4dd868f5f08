"""Renders one question to a person: the call, the reason, and the possible answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from rich.box import ROUNDED
from rich.panel import Panel
from rich.text import Text

from cueline.console.text import capped, diff_style, is_capped, is_diff, json_of, one_line, visible
from cueline.errors import ConfigError
from cueline.events.inbox import Resolution
from cueline.events.input_request import InputRequest, request_text
from cueline.events.message import Arguments

_LINES_OF_A_VALUE = 12
_LINES_OF_A_DIFF = 24
_WIDTH = 400
_MINUTE = 60
ANSWERED: Mapping[str, str] = {
    "happened": "answered (it happened)",
    "run_again": "answered (run it again)",
    "do_not_run": "answered (do not run it)",
}
"""The words for the answers about a call in doubt."""
_DECIDED = {"grant": "granted", "deny": "denied"}
KEYS: Mapping[str, Resolution] = {"h": "happened", "r": "run_again", "n": "do_not_run"}
"""The keys at the prompt for the answers about a call in doubt."""


def answer_text(verdict: str, resolution: str | None) -> str:
    """Return the effect of a decision in words."""
    return ANSWERED[resolution] if resolution else _DECIDED[verdict]


@dataclass(frozen=True, slots=True)
class Question:
    """One open approval for this person."""

    approval: str
    session: str
    """The id of the session, as users write it."""
    tool: str
    arguments: Mapping[str, object]
    deadline_at: datetime
    resolutions: Mapping[Resolution, str] = field(default_factory=dict)
    """For a call in doubt: the answers with their effects; empty for any other call."""
    requests: tuple[InputRequest, ...] = ()
    """What the call asks for; empty for any other call."""
    rule: str = ""
    """The rules that ask."""
    cost: str = ""
    """The estimated cost, if known."""
    preview: str = ""
    """The diff of the change."""
    auto_at: datetime | None = None
    """The time of the automatic grant, unless a person denies the call earlier."""
    edited: bool = False
    """Whether the arguments were edited."""
    votes: int = 1
    """The number of people who have to allow the call."""
    barred: str = ""
    """The reason why the person here may not allow the call."""
    fixed: str = ""
    """The reason why the person can neither edit the call nor always allow it."""
    covers: str = ""
    """The calls that `a` would allow."""

    @property
    def is_cut(self) -> bool:
        """Whether `box` omits a part of the call, so that `d` has to show it first."""
        pieces = [(_text_of(value), _LINES_OF_A_VALUE) for value in self.arguments.values()]
        pieces.append((self.preview, _LINES_OF_A_DIFF))
        return any(is_capped(text, most, _WIDTH) for text, most in pieces)


def box(question: Question) -> Panel:
    """Return the call in a box."""
    rows = [f"Action: {visible(question.tool)}"]
    for key, value in question.arguments.items():
        first, *rest = capped(_text_of(value), _LINES_OF_A_VALUE, _WIDTH)
        rows += [f"{visible(key).capitalize()}: {first}", *(f"  {line}" for line in rest)]
    change = capped(question.preview, _LINES_OF_A_DIFF, _WIDTH) if question.preview else []
    why = () if question.requests else _why(question)
    after = [*why, f"Session: {question.session}", f"Approval: {question.approval}"]
    if question.requests:
        asked = [line for each in question.requests for line in request_text(each).splitlines()]
        rows = [f"{visible(question.tool)} asks:", *map(visible, asked)]
    title = "⚠️  OUTCOME UNKNOWN" if question.resolutions else "⚠️  APPROVAL REQUIRED"
    title = "❓  QUESTION" if question.requests else title
    return Panel(
        _with_change(rows, change, [*after, *_choices(question)]),
        title=title,
        title_align="left",
        box=ROUNDED,
        border_style="yellow",
    )


def whole(question: Question) -> Text:
    """Return the whole arguments and the whole change."""
    rows = []
    for key, value in question.arguments.items():
        rows += [
            f"{visible(key)}:",
            *(f"  {line}" for line in visible(_text_of(value)).split("\n")),
        ]
    return _with_change(rows, visible(question.preview).splitlines(), [])


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json_of(value)


def _with_change(before: Sequence[str], change: Sequence[str], after: Sequence[str]) -> Text:
    text = Text("\n".join(before))
    if change:
        text.append("\nChange:" if is_diff(change) else "\nNote:")
    for line in change:
        text.append(f"\n  {line}", diff_style(line))
    return text.append("".join(f"\n{row}" for row in after))


def explanation(question: Question) -> Iterator[str]:
    """Return lines that explain the effect of each possible answer."""
    yield from _choices(question)
    if question.requests:
        yield "the number of a choice stands for it; /deny TEXT tells the agent why not"
    elif question.resolutions:
        yield "h TEXT tells the agent what the call gave; n TEXT why it is not to run"
    else:
        yield "n TEXT denies it, and tells the agent why; only Enter denies it without a word"
        if not (question.barred or question.fixed):
            yield f"a allows {visible(question.covers)}, until the session ends"
            yield "e asks for NAME=VALUE, or for all arguments as a JSON object, and asks again"
    yield "d shows the arguments and the change whole; only then y and a count where some is cut"
    yield "/cost tells what the session used, /pause or Ctrl-C leaves the question open"
    yield f"from any other shell: cueline approve {question.approval}"


def _why(question: Question) -> Iterator[str]:
    """Return the rules that ask, the cost, and the other people who have to allow the call."""
    people = f"{question.votes} people have to allow it" if question.votes > 1 else ""
    if why := ", ".join(filter(None, (question.rule, question.cost, people))):
        yield f"Rule: {one_line(why, 400)}"


def _choices(question: Question) -> Iterator[str]:
    """Return the effects of the keys that this person may use."""
    if question.barred:
        yield objection(question)
    elif question.requests:
        several = len([name for each in question.requests for name in each.values]) > 1
        form = "NAME=VALUE for each, with quotes where it has spaces" if several else "your answer"
        yield f"type {form} · /deny refuses · ? explain"
    elif question.resolutions:
        for key, resolution in KEYS.items():
            more = " (h TEXT)" if resolution == "happened" else ""
            yield f"{key}: {question.resolutions[resolution]}{more}"
    else:
        more = "" if question.fixed else "a always · e change it · "
        first = "d show all of it, then y allow" if question.is_cut else "y allow"
        last = "" if question.is_cut else "d show all of it · "
        yield f"{first} · n deny (or only Enter) · {more}{last}? explain"
        if more and question.covers:
            yield f"always: {one_line(question.covers, _WIDTH)}"


def objection(question: Question) -> str:
    """Return why the person here may not allow the call, and the answers that they can give."""
    says = "has it not run" if question.resolutions else "denies it"
    return f"{visible(question.barred)}; n {says}"


def time_left(seconds: float) -> str:
    """Return the time left to answer, as `5m`, `4m 59s` or `9s`."""
    whole = max(int(seconds + 0.5), 0)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole >= 60 * _MINUTE:
        return f"{whole // 3600}h {whole % 3600 // _MINUTE}m"
    return f"{whole // _MINUTE}m" + (f" {whole % _MINUTE}s" if whole % _MINUTE else "")


def wording(question: Question) -> str:
    """Return the words of the question, and the keys that answer it."""
    if question.requests:
        return "Answer"
    if question.resolutions:
        return f"What became of it? [{'n' if question.barred else '/'.join(KEYS)}]"
    return "Deny it? [n]" if question.barred else "Approve? [y/N]"


def edit_arguments(arguments: Mapping[str, object], changes: Sequence[str]) -> Arguments:
    """Return *arguments* with *changes*: `name=value`, or a JSON object that replaces all.

    A value is JSON where it reads like that, else text.

    Raises:
        ConfigError: a change has neither form.
    """
    result = dict(arguments)
    for change in changes:
        if change.lstrip().startswith("{"):
            result = _object(change)
            continue
        name, equals, value = change.partition("=")
        if not (equals and name.strip()):
            raise ConfigError("the edit", f"{change!r} is neither NAME=VALUE nor a JSON object")
        result[name.strip()] = _value(value)
    return result  # type: ignore[return-value]  # arguments are JSON, and so is what was read


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text, parse_constant=_no_json)
    except ValueError as error:
        raise ConfigError("the edit", f"it is not JSON: {error}") from error
    assert isinstance(found, dict), "what begins with a brace is an object"
    return found


def _value(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_json)
    except ValueError:
        return text


def _no_json(name: str) -> NoReturn:
    """Raise for NaN and infinity, which JSON does not have."""
    raise ValueError(f"{name} is no value in it")
