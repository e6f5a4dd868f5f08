"""Writes a log of many sessions, as hosts would leave it: for `bench/audit.py`.

`python -m bench.audit_log FILE EVENTS` writes one by hand.
"""

import asyncio
import hashlib
import random
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from cueline.clock import Clock
from cueline.events.agent import AgentSpec, Policy, ToolSpec
from cueline.events.approval import ApprovalDenied, ApprovalGranted, ApprovalOpened
from cueline.events.codes import Cause
from cueline.events.fact import Fact
from cueline.events.inbox import DecisionGiven, StartAsked
from cueline.events.journal import FactWrite
from cueline.events.message import Cost, TextBlock, ToolCall, Usage
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    FileChange,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    SessionCompleted,
    SessionContinued,
    SessionStarted,
    SessionWaiting,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.stream import stream_name
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

AGENTS = ("writer", "reviewer", "fixer", "researcher")
MODELS = ("claude-sonnet-4-6", "gpt-5", "gemini-3-pro")
PEOPLE = tuple(f"person{n}" for n in range(20))
TOOLS = ("read_file", "write_file", "run_command", "search")
RARE = "needle"
"""A word that a few calls have."""
TOGETHER = 20
"""Sessions that are appended at once."""


def _words(number: int) -> list[str]:
    """Return the words of texts, the common ones more than once."""
    made = random.Random(1)
    letters = "etaoinshrdlu"
    words = ["".join(made.choices(letters, k=made.randint(2, 9))) for _ in range(number)]
    return [word for rank, word in enumerate(words, 1) for _ in range(1 + 400 // rank)]


_VOCABULARY = _words(4000)


class Sessions:
    """Makes the facts of sessions, the same ones for the same *seed*."""

    def __init__(self, clock: Clock, seed: int = 1) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        tools = [
            ToolSpec(
                name=name,
                description=f"Do what {name} says.",
                parameters={"type": "object", "properties": {"path": {"type": "string"}}},
                declared="read_only" if name in ("read_file", "search") else "nothing",
                target=f"builtin:{name}",
                digest=hashlib.sha256(name.encode()).hexdigest(),
            )
            for name in TOOLS
        ]
        self._agents = {
            (name, model): AgentSpec(
                name=name,
                provider="bench",
                model=model,
                instructions=f"You are a {name}. " + self._text(1500),
                tools=tuple(tools),
                policy=Policy(),
            )
            for name in AGENTS
            for model in MODELS
        }

    def writes(self, number: int) -> list[FactWrite]:
        """Return the appends of one session: its inbox, its own stream, its approvals."""
        name, choice = f"{number:08x}", self._random.choice
        self._person, self._inbox = choice(PEOPLE), 1
        self._session, self._model = name, choice(MODELS)
        agent = self._agents[choice(AGENTS), self._model]
        now = self._clock.now()
        goal = self._text(120)
        self._messages: list[Fact] = [StartAsked(agent=agent, goal=goal, asked_at=now)]
        self._approvals: list[FactWrite] = []
        own: list[Fact] = [
            SessionStarted(agent=agent, goal=goal, open=False, attached=False, epoch=1, at=now)
        ]
        turns = self._random.randint(3, 12)
        for turn in range(1, turns + 1):
            own += self._turn(turn, last=turn == turns)
        own.append(SessionCompleted(result=self._text(300), turns=turns))
        inbox = self._write("inbox", self._messages, actor=f"user:{self._person}")
        return [inbox, self._write("session", own), *self._approvals]

    def _write(self, category: str, facts: list[Fact], actor: str = "agent") -> FactWrite:
        stream = stream_name(category, self._session)
        return FactWrite(stream, [[each] for each in facts], 0, actor=actor)

    def _text(self, size: int) -> str:
        words = self._random.choices(_VOCABULARY, k=size // 6)
        return " ".join(words).capitalize() + "."

    def _digest(self, what: object) -> str:
        return hashlib.sha256(f"{self._session} {what}".encode()).hexdigest()

    def _turn(self, turn: int, *, last: bool) -> Iterator[Fact]:
        model = f"{turn}.m"
        yield ModelRequested(
            effect=model, attempt=1, digest=self._digest(turn), prefix_digest=self._digest(turn - 1)
        )
        yield ModelStarted(effect=model, attempt=1)
        calls = () if last else (self._call(turn),)
        yield ModelReplied(
            effect=model,
            attempt=1,
            content=(TextBlock(text=self._text(self._random.randint(100, 900))),),
            calls=calls,
            stop_reason="end_turn" if last else "tool_use",
            usage=Usage(input=self._random.randint(900, 9000), output=200, cache_read=800),
            cost=Cost(usd=Decimal(self._random.randint(100, 9000)) / 1_000_000, prices="list"),
            model=self._model,
            seconds=2.5,
        )
        for call in calls:
            yield from self._outcome(f"{turn}.0", call)

    def _call(self, turn: int) -> ToolCall:
        tool = self._random.choice(TOOLS)
        path = f"src/{self._random.choice(_VOCABULARY)}/{self._random.choice(_VOCABULARY)}.py"
        arguments: dict[str, object] = {"path": path}
        if tool == "run_command":
            verb = self._random.choice(("ls -l", "pytest -q", "git diff", "rm -rf"))
            rare = f" {RARE}" if not self._random.randrange(500) else ""
            arguments = {"command": f"{verb} {path}{rare}"}
        elif tool == "write_file":
            arguments["content"] = self._text(400)
        return ToolCall(id=f"call_{turn}", name=tool, arguments=arguments)

    def _outcome(self, effect: str, call: ToolCall) -> Iterator[Fact]:
        if call.name == "run_command" and not self._random.randrange(4):
            verdict = yield from self._question(effect, call)
            if not verdict:
                yield ToolSkipped(effect=effect, reason="A person denied it.", rule="sensitive")
                return
        yield ToolStarted(
            effect=effect, attempt=1, tool=call.name, runner="r1", epoch=1, rule="not sensitive"
        )
        changes = ()
        if call.name == "write_file":
            path, after = str(call.arguments["path"]), self._digest(effect)
            changes = (FileChange(path, None, "", after, 0o644),)
        yield ToolReturned(
            effect=effect,
            attempt=1,
            output=self._text(self._random.randint(50, 1500)),
            seconds=0.5,
            changes=changes,
        )

    def _question(self, effect: str, call: ToolCall) -> Iterator[Fact]:
        """Yield the facts of a question and its decision; return whether the call may run."""
        approval, digest, now = f"{self._session}.{effect}.1", self._digest(effect), None
        now = self._clock.now()
        until, by = now + timedelta(hours=1), self._random.choice(PEOPLE)
        granted = bool(self._random.randrange(5))
        opened = ApprovalOpened(
            session=stream_name("session", self._session),
            effect=effect,
            digest=digest,
            question="may_it_run",
            tool=call.name,
            arguments=dict(call.arguments),
            summary=str(call.arguments["command"]),
            rule="sensitive",
            epoch=1,
            opened_at=now,
            deadline_at=until,
        )
        closed = ApprovalGranted(by=by, digest=digest) if granted else ApprovalDenied(by=by)
        stream = stream_name("approval", approval)
        self._approvals.append(FactWrite(stream, [[opened]], 0))
        self._approvals.append(FactWrite(stream, [[closed]], 1, actor=f"user:{by}"))
        yield ApprovalRequested(
            effect=effect, approval=stream, digest=digest, deadline_at=until, rule="sensitive"
        )
        cause = Cause(code="approval_pending", approvals=(effect,))
        yield SessionWaiting(kind="approval", cause=cause, deadline_at=until, effects=(effect,))
        said = DecisionGiven(
            approval=approval, digest=digest, verdict="grant" if granted else "deny", by=by
        )
        self._messages.append(said)
        self._inbox += 1
        yield MessageReceived(inbox_version=self._inbox, recorded_at=now, message=said)
        verdict = "granted" if granted else "denied"
        yield ApprovalResolved(approval=stream, verdict=verdict, by=by, digest=digest)
        yield SessionContinued(by="message", at=now)
        return granted


async def write(log: OpenLog, events: int) -> int:
    """Append sessions until the log has *events* events; return the number of sessions."""
    sessions = Sessions(log.clock)
    journal, number = log.journal(), 0
    while await log.store.last_position() < events:
        appends = []
        for _ in range(TOGETHER):
            number += 1
            appends.append(journal.append(sessions.writes(number), key=f"bench {number}"))
        await asyncio.gather(*appends)
    return number


async def make(path: Path, events: int) -> int:
    """Create the log *path*; see `write`."""
    async with open_log(path) as log:
        return await write(log, events)


if __name__ == "__main__":
    print(run(make(Path(sys.argv[1]), int(sys.argv[2]))))
