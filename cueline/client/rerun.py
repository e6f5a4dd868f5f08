"""Runs a recorded session again: with its replies and results, and perhaps another agent."""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from os import PathLike

from cueline.actors.inbox import new_id
from cueline.agents.agent import Agent
from cueline.agents.preflight import check_limits
from cueline.agents.secret import check_secrets, waiver
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.document import document
from cueline.client.history import History, read_history
from cueline.client.session_course import FAILED, Course, CourseCall, course_of
from cueline.client.start import StartRequest, agent_of, check_id_is_free
from cueline.deciders.session import Status
from cueline.errors import RejectedError
from cueline.events.agent import AgentSpec, Policy, ToolSpec
from cueline.events.agent_parts import ToolRecording
from cueline.events.codes import NOT_RECORDED
from cueline.events.event_text import cause_text, end_text
from cueline.events.inbox import MessageSent, StartAsked
from cueline.events.message import Arguments
from cueline.events.session import SessionFailed, ToolStarted
from cueline.events.stream import shown
from cueline.providers.replay.provider import NAME as REPLAY
from cueline.providers.replay.provider import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunDifference:
    """One difference between a session and its rerun."""

    turn: int
    """The number of the model's reply, from 1; 0: before the first."""
    what: str
    """`instructions`, `tools`, `judgement`, `result` or `end`."""
    effect: str = ""
    """For `judgement` and `result`: the call."""
    tool: str = ""
    recorded: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCall:
    """The call without a recorded result, which stopped a rerun."""

    turn: int
    effect: str
    tool: str
    arguments: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunResult:
    """The result of a rerun."""

    session: str
    """The id of the rerun."""
    recorded: str
    """The id of the session that was run again."""
    status: str
    """The status of the rerun."""
    turns: int
    """The number of repeated replies."""
    recorded_turns: int
    """The number of recorded replies."""
    results: int
    """The number of results from the recording."""
    ran: int
    """The number of calls that ran."""
    differences: tuple[RerunDifference, ...]
    """The differences, in order."""
    unanswered: UnansweredCall | None
    """The call without a recorded result; None: every call had one, or ran."""

    def to_json(self) -> dict[str, object]:
        """Return it as JSON; `docs/reference/client.md` has the fields."""
        told: dict[str, object] = document(self)
        return told


async def rerun_request(
    client: Connection,
    stream: str,
    *,
    agent: Agent | str | PathLike[str] | None = None,
    run_tools: bool = False,
    id: str | None = None,  # noqa: A002 - the word of the log
    without_secrets: Collection[str] = (),
    attached: bool = False,
) -> StartRequest:
    """Check the start of a rerun, and return it. See `Client.rerun`, which raises the same errors.

    *attached*: a person is at a terminal, and is asked there.
    """
    name = new_id() if id is None else id
    await check_id_is_free(client.log, name)
    history = await read_history(client.log, stream)
    course = course_read(history)
    if not course.replies:
        raise RejectedError(history.id, "it has no reply of a model, so nothing can be run again")
    recording = Recording(
        session=history.stream, version=history.version, replies=course.recorded_replies()
    )
    base = recorded_agent(history) if agent is None else agent_of(agent).spec()
    spec = rerun_agent(base, course, recording, run_tools=run_tools)
    check_limits(spec, ())
    check_secrets(spec, without_secrets)
    user = client.log.user
    asked = make_value(
        StartAsked,
        agent=spec,
        goal=course.goal,
        attachments=course.attachments,
        open=course.open,
        attached=attached,
        asked_by=user,
        asked_at=client.log.clock.now(),
    )
    waived = waiver(spec, without_secrets, user)
    return StartRequest(name, asked, waived, messages=tuple(messages_of(course)))


def course_read(history: History) -> Course:
    """Return the course of a wholly readable session.

    Raises:
        CorruptEventError: the log is damaged, or an event of it was emptied.
    """
    if (error := history.damage or history.followed.emptied) is not None:
        raise error
    return course_of(fact for _, fact in history.events if fact is not None)


def recorded_agent(history: History) -> AgentSpec:
    """Return the agent of a session, with its raised limits."""
    state = history.state
    return state.agent.model_copy(update={"limits": state.limit_state.limits})


def rerun_agent(
    agent: AgentSpec, course: Course, recording: Recording, *, run_tools: bool
) -> AgentSpec:
    """Return *agent* with the recording instead of its models and tools, without costs."""
    limits = agent.limits.model_copy(update={"max_cost": None, "max_tokens": None})
    return agent.model_copy(
        update={
            "provider": REPLAY,
            "model": shown(recording.session),
            "parameters": recording.as_parameters(),
            "fallback": (),
            "base_url": None,
            "key_variable": None,
            "headers": {},
            "prices": {},
            "on_unknown_price": None,
            "limits": limits,
            "limit_sources": {},
            "tools": tuple(_recorded(tool, course, run_tools=run_tools) for tool in agent.tools),
            "policy": agent.policy if run_tools else _granting(agent.policy),
        }
    )


def _recorded(tool: ToolSpec, course: Course, *, run_tools: bool) -> ToolSpec:
    recording = ToolRecording(results=course.results_of(tool.name), run_others=run_tools)
    # A tool that does not run needs no folder, on whatever machine that is.
    needs = tool.needs_workspace and run_tools
    return tool.model_copy(update={"recording": recording, "needs_workspace": needs})


def _granting(policy: Policy) -> Policy:
    """Return *policy* for calls that do not run: the same denials, and no questions."""
    anybody = {"may_grant": (), "votes": 1, "exclude_requester": False}
    rules = tuple(rule.model_copy(update=anybody) for rule in policy.rules)
    return policy.model_copy(
        update={"rules": rules, "auto_approve": True, "auto_approve_after": None, "hooks": ()}
    )


def messages_of(course: Course) -> Iterator[MessageSent]:
    """Yield the messages after the goal, each for the turn whose request included it."""
    for turn, messages in course.messages.items():
        first = 1 if turn == 1 and course.has_goal else 0
        for text, attached in messages[first:]:
            yield MessageSent(lane="note", text=text, turn=turn, attachments=attached)


async def rerun_result(read: Callable[..., Awaitable[History]], rerun: str) -> RerunResult:
    """Compare a rerun with the session that it runs again; *read* is `Reader.history`.

    Raises:
        RejectedError: the session is no rerun.
        CorruptEventError: one of the two cannot be read.
    """
    history = await read(rerun)
    course = course_read(history)
    if course.agent is None or course.agent.provider != REPLAY:
        raise RejectedError(history.id, "it is no rerun")
    recording = Recording.model_validate(course.agent.parameters["recording"])
    before = await read(recording.session, until=recording.version)
    recorded = course_read(before)
    started = {fact.effect for _, fact in history.events if isinstance(fact, ToolStarted)}
    tools = {tool.name: tool.recording or ToolRecording() for tool in course.agent.tools}
    answered = {
        effect
        for effect in started
        if tools[(call := course.calls[effect].call).name].result_of(effect, call.arguments)
    }
    return RerunResult(
        session=history.id,
        recorded=before.id,
        status=history.status,
        turns=len(course.replies),
        recorded_turns=len(recorded.replies),
        results=len(answered),
        ran=sum(not _is_unanswered(course.calls[effect]) for effect in started - answered),
        differences=tuple(_differences(recorded, course, before, history)),
        unanswered=_unanswered(course),
    )


def _is_unanswered(call: CourseCall) -> bool:
    return call.failed and call.text.startswith(f"{NOT_RECORDED}: ")


def _unanswered(course: Course) -> UnansweredCall | None:
    for effect, each in course.calls.items():
        if _is_unanswered(each):
            call = each.call
            return UnansweredCall(
                turn=each.turn, effect=effect, tool=call.name, arguments=call.arguments
            )
    return None


def _differences(
    recorded: Course, course: Course, before: History, now: History
) -> Iterator[RerunDifference]:
    yield from _of_start(recorded.agent, course.agent)
    for effect, was in recorded.calls.items():
        if (found := course.calls.get(effect)) is not None:
            yield from _of_call(effect, was, found)
    yield from _of_end(recorded, course, before, now)


def _of_start(was: AgentSpec | None, now: AgentSpec | None) -> Iterator[RerunDifference]:
    assert was is not None, "a session that was started has an agent"
    assert now is not None, "so has its rerun"
    if was.instructions != now.instructions:
        yield RerunDifference(
            turn=0, what="instructions", recorded=was.instructions, now=now.instructions
        )
    before, after = ({tool.name: tool for tool in agent.tools} for agent in (was, now))
    for name in dict.fromkeys((*before, *after)):
        old, new = _told(before.get(name)), _told(after.get(name))
        if old != new:
            yield RerunDifference(turn=0, what="tools", tool=name, recorded=old, now=new)


def _told(tool: ToolSpec | None) -> str:
    """Return the description of a tool for the model."""
    if tool is None:
        return "no such tool"
    return f"{tool.description} {json.dumps(tool.parameters, ensure_ascii=False)}"


def _of_call(effect: str, was: CourseCall, now: CourseCall) -> Iterator[RerunDifference]:
    # Another rule with the same answer makes no difference to the call.
    if _outcome(was) != _outcome(now):
        yield _of(effect, was, "judgement", _judged(was), _judged(now))
    elif was.closed and now.closed and not _is_unanswered(now):
        before, after = was.text.removeprefix(FAILED), now.text.removeprefix(FAILED)
        if before != after:
            yield _of(effect, was, "result", before, after)


def _of(effect: str, call: CourseCall, what: str, recorded: str, now: str) -> RerunDifference:
    return RerunDifference(
        turn=call.turn, what=what, effect=effect, tool=call.call.name, recorded=recorded, now=now
    )


def _outcome(call: CourseCall) -> tuple[str, str]:
    """Return the rules' answer to a call, and the fault of an invalid call."""
    judged = call.judged
    return judged.answer, "" if judged.answer == "deny" else judged.problem


def _judged(call: CourseCall) -> str:
    judged = call.judged
    if judged.problem and judged.answer != "deny":
        return f"not run: {judged.problem}"
    return f"{judged.answer} (rule {judged.rule})" if judged.rule else judged.answer


def _of_end(
    recorded: Course, course: Course, before: History, now: History
) -> Iterator[RerunDifference]:
    turns, done = len(recorded.replies), len(course.replies)
    if _unanswered(course) is not None:
        return  # that difference names the reason of the end
    if done < turns:
        yield RerunDifference(turn=done + 1, what="end", recorded="a reply", now=_end_of(now))
    elif before.state.status is Status.COMPLETED and now.state.status is not Status.COMPLETED:
        yield RerunDifference(turn=done, what="end", recorded="completed", now=_end_of(now))


def _end_of(history: History) -> str:
    for _, fact in reversed(history.events):
        if isinstance(fact, SessionFailed):
            return f"failed: {end_text(fact)}"
    waiting = history.state.waiting
    return history.status if waiting is None else f"{history.status}: {cause_text(waiting.cause)}"
