"""What a proposed request would do to a session now: in words, and as changed values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, JsonValue

from cueline.actors.session_owner import owner_of
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.current_session import CurrentSession, current_session
from cueline.client.decide import question_of
from cueline.client.document import document
from cueline.client.runs import run_request
from cueline.client.start import StartOptions, StartRequest
from cueline.client.wishes import Wish, chosen, make_wish
from cueline.errors import ConfigError, RejectedError
from cueline.events.agent import own_model
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.start import QUEUE_SECONDS
from cueline.events.stream import shown, sibling

ActionName = Literal[
    "start_session",
    "send",
    "set_model",
    "pause",
    "resume",
    "raise_limits",
    "stop",
    "approve",
    "deny",
]


class Action(NamedTuple):
    """A kind of request that can be proposed."""

    kind: type[BaseModel]
    fixed: Mapping[str, object] = {}
    inverse: str = ""
    """The action that undoes it."""


class RunAsked(BaseModel, extra="forbid"):
    """The arguments of a start of a blueprint: those of `Client.submit`."""

    blueprint: str
    goal: str | None = None
    parameters: dict[str, JsonValue] | None = None
    texts: dict[str, str] | None = None
    queue_seconds: float = QUEUE_SECONDS
    parent: str | None = None
    labels: dict[str, str] | None = None
    at: str | None = None
    every: float | str | None = None


ACTIONS: Final[Mapping[str, Action]] = {
    "start_session": Action(RunAsked),
    "send": Action(MessageSent),
    "set_model": Action(ModelChangeAsked, inverse="set_model"),
    "pause": Action(PauseAsked, inverse="resume"),
    "resume": Action(ResumeAsked, inverse="pause"),
    "raise_limits": Action(RaiseAsked),
    "stop": Action(StopAsked),
    "approve": Action(DecisionGiven, {"verdict": "grant"}),
    "deny": Action(DecisionGiven, {"verdict": "deny"}),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A value that a proposal would change."""

    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an action would do now."""

    value: Wish | StartRequest
    summary: str
    arguments: dict[str, Any]
    stream: str = ""
    version: int = 0
    inbox: int = 0
    changes: Mapping[str, Change] = field(default_factory=dict)
    preview: str = ""
    back: Mapping[str, Any] = field(default_factory=dict)

    @property
    def was(self) -> dict[str, Any]:
        """The values on which the proposal depends."""
        return {name: each.before for name, each in self.changes.items()}


async def plan_of(client: Connection, action: str, arguments: Mapping[str, Any], key: str) -> Plan:
    """Return what *action* would do now; *key* is that of a start."""
    if action not in ACTIONS:
        raise ConfigError("action", f"{action!r} is none of {', '.join(ACTIONS)}")
    kind, fixed, _ = ACTIONS[action]
    if kind is RunAsked:
        return await _plan_of_start(client, make_value(RunAsked, **arguments), key)
    named = dict(arguments)
    session = None if kind is DecisionGiven else named.pop("session", "")
    if kind is ModelChangeAsked and isinstance(named.get("model"), str):
        named["model"] = {"provider": "", "model": named["model"]}
    value: Any = make_wish(kind, **{**named, **fixed})
    if isinstance(value, DecisionGiven):
        return await _plan_of_decision(client, value, dict(arguments))
    stream = await client.find(session)  # type: ignore[arg-type]
    now = await current_session(client.cache, stream)
    now.check_takes(value)
    summary, changes, back = _effect(client, now, value)
    if isinstance(value, ResumeAsked) and not now.held:
        log = client.log
        owner = await owner_of(log.store, log.board, stream, log.clock.now())
        changes = {"driven": Change(owner is not None, after=True)}
    return Plan(
        value=value,
        summary=summary,
        arguments={**named, "session": shown(stream)},
        stream=stream,
        version=now.version,
        inbox=(await client.log.store.head(sibling(stream, "inbox"))).version,
        changes=changes,
        back=back,
    )


def _effect(
    client: Connection, now: CurrentSession, value: Any
) -> tuple[str, dict[str, Change], dict[str, Any]]:
    """Return the effect of a wish in words, the changed values, and the arguments of its undo."""
    name = shown(now.state.stream)
    match value:
        case PauseAsked():
            told = f"pause {name}: running calls finish, and no new call starts"
            return told, {"paused": Change(now.held, after=True)}, {}
        case ResumeAsked():
            return f"resume {name}", {"paused": Change(now.held, after=False)}, {}
        case ModelChangeAsked():
            then, model = own_model(now.agent), chosen(client, now, value).model
            before, after = (f"{each.provider}/{each.model}" for each in (then, model))
            told = f"give {name} the model {after} instead of {before}"
            back = {"model": then.model_dump(mode="json")}
            return told, {"model": Change(before, after)}, back
        case RaiseAsked():
            limits = now.agent.limits if now.state.setup is None else now.state.limit_state.limits
            raised = value.model_dump(mode="json", exclude={"type"}, exclude_none=True)
            changes = {
                each: Change(document(getattr(limits, each)), more) for each, more in raised.items()
            }
            steps = [f"{each} from {it.before} to {it.after}" for each, it in changes.items()]
            return f"raise of {name}: {', '.join(steps)}", changes, {}
        case StopAsked():
            return f"end {name}, which is {now.state.status}; this cannot be undone", {}, {}
        case MessageSent(lane=lane, text=text):
            return f"send {name} a {lane}: {text}", {}, {}
    raise AssertionError(value)


async def _plan_of_decision(
    client: Connection, given: DecisionGiven, arguments: dict[str, Any]
) -> Plan:
    """Return what a decision would do now."""
    opened = await question_of(client, given.approval)
    if given.digest and given.digest != opened.digest:
        raise RejectedError(given.approval, "it asks about another call now")
    given = given.model_copy(update={"digest": opened.digest})
    now = await current_session(client.cache, opened.session)
    verb = "allow" if given.verdict == "grant" else "refuse"
    return Plan(
        value=given,
        summary=f"{verb} the call of {shown(opened.session)}: {opened.summary}",
        arguments={**arguments, "digest": opened.digest},
        stream=opened.session,
        version=now.version,
        inbox=(await client.log.store.head(sibling(opened.session, "inbox"))).version,
        preview=opened.preview,
    )


async def _plan_of_start(client: Connection, asked: RunAsked, key: str) -> Plan:
    """Return what a start of a blueprint would do now."""
    given = asked.model_dump(exclude={"blueprint", "queue_seconds"})
    options = StartOptions(key=key, **given)
    request = await run_request(client, asked.blueprint, options, queue_seconds=asked.queue_seconds)
    agent = request.asked.agent
    goal = "" if asked.goal is None else f": {asked.goal}"
    model = f" ({agent.provider}/{agent.model})" if agent.model else ""
    return Plan(
        value=request,
        summary=f"start {asked.blueprint}{model}{goal}",
        arguments=asked.model_dump(mode="json", exclude_unset=True),
    )
