"""Renders the events of a session for a page: what was said, called, returned and decided."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from markupsafe import Markup

from cueline.console.checklist import checklist
from cueline.console.event_renderer import EventRenderer
from cueline.console.text import duration, money, visible
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall, message_text
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallsAdded,
    MessageReceived,
    ModelReplied,
    SessionEvent,
    SessionStarted,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
    calls_of,
)
from cueline.events.store import RecordedEvent
from cueline.gateway.pages.show import ago, arguments, diff, markdown

Told = tuple[RecordedEvent, SessionEvent | None]
"""An event, and its fact; None for an emptied one."""
_THOUGHTS: Final = Markup("<details><summary>Thoughts</summary>{}</details>")
_CALL: Final = Markup(
    '<div class="call"><strong>{}</strong> <span class="facts">{}</span><pre>{}</pre></div>'
)
_ITEM: Final = Markup('<section class="item {}{}" id="v{}">{}{}</section>\n')
_FAULTS: Final = (ToolFailed, ToolInDoubt, ToolSkipped)
_ASKED: Final = (ApprovalRequested, ApprovalResolved, ToolInDoubt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a page shows of one event."""

    version: int
    at: datetime
    kind: str
    """The class of its style: `user`, `agent`, `call`, `result` or `note`."""
    body: Markup
    failed: bool = False
    asked: bool = False
    cost: Decimal = Decimal(0)


def items(events: Iterable[Told], renderer: EventRenderer) -> Iterator[Item]:
    """Yield an item for each event that says something to people."""
    for recorded, fact in events:
        shown = _item(recorded, fact, renderer)
        if shown is not None:
            yield shown


def _item(
    recorded: RecordedEvent, fact: SessionEvent | None, renderer: EventRenderer
) -> Item | None:
    if fact is None:
        body = Markup("<em>emptied</em>")
        return Item(version=recorded.version, at=recorded.recorded_at, kind="note", body=body)
    lines = renderer.render(recorded, fact)  # it also learns the names of calls
    if isinstance(fact, ToolStarted) and fact.attempt == 1 and not fact.notify:
        return None  # the call is shown where it was asked for
    kind, body = "note", Markup("\n").join(visible(line.text) for line in lines)
    cost = Decimal(0)
    match fact:
        case MessageReceived(message=MessageSent(text=text, attachments=attached)):
            kind, body = "user", _text(message_text(text, attached))
        case SessionStarted(goal=str(goal), attachments=attached):
            kind, body = "user", _text(message_text(goal, attached))
        case ModelReplied():
            kind, body = "agent", _reply(fact)
            cost = Decimal(0) if fact.cost is None else fact.cost.usd
        case CallsAdded():
            kind, body = "call", _calls(fact)
        case ToolReturned(effect=effect, output=output, seconds=seconds):
            kind, body = "result", _result(_name(renderer, effect), output, duration(seconds))
        case ToolFailed(effect=effect, kind=code, message=message):
            kind, body = "result", _result(_name(renderer, effect), message, f"failed: {code}")
    if not body.strip():
        return None
    return Item(
        version=recorded.version,
        at=recorded.recorded_at,
        kind=kind,
        body=body,
        failed=isinstance(fact, _FAULTS) or any(line.tone == "bad" for line in lines),
        asked=isinstance(fact, _ASKED),
        cost=cost,
    )


def _name(renderer: EventRenderer, effect: str) -> str:
    call = renderer.calls.get(effect)
    return effect if call is None else call.name


def _text(text: str) -> Markup:
    return Markup('<div class="text">{}</div>').format(markdown(text))


def _reply(fact: ModelReplied) -> Markup:
    parts = [Markup()]
    for block in fact.content:
        if isinstance(block, ThinkingBlock) and block.text.strip():
            thoughts = markdown(block.text)
            parts.append(_THOUGHTS.format(thoughts))
        if isinstance(block, TextBlock) and block.text.strip():
            parts.append(_text(block.text))
    parts.append(_calls(fact))
    cost = "" if fact.cost is None else f" · {money(fact.cost.usd)}"
    used = f"{fact.model} · {fact.usage.sent:,} in, {fact.usage.output:,} out tokens"
    line = f"{used}{cost} · {duration(fact.seconds)}"
    parts.append(Markup('<p class="facts">{}</p>').format(line))
    return Markup().join(parts)


def _calls(fact: ModelReplied | CallsAdded) -> Markup:
    return Markup().join(
        _CALL.format(visible(call.name), effect, _given(call))
        for effect, call in calls_of(fact).items()
    )


def _given(call: ToolCall) -> str:
    rows = checklist(call)
    return "\n".join(row.text for row in rows) if rows else arguments(call.arguments)


def _result(name: str, output: str, said: str) -> Markup:
    head = Markup('<p><strong>{}</strong> <span class="facts">{}</span></p>').format(
        visible(name), said
    )
    if not output.strip():
        return head
    return Markup("{}<pre>{}</pre>").format(head, diff(output))


def html(each: Item, link: str) -> Markup:
    """Return the HTML of an item; the link to its event is *link* and its version."""
    time = Markup('<a class="at" href="{}{}">{}</a>').format(link, each.version, ago(each.at))
    bad = " bad" if each.failed else ""
    return _ITEM.format(each.kind, bad, each.version, time, each.body)
