"""Six sessions plan, ask, implement and have a review, in three sandboxes, for hours."""

import runpy
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cueline
from cueline.client.runtime import Runtime
from cueline.clock import SystemClock
from cueline.events.session import (
    LimitWarned,
    ModelStarted,
    SandboxAttached,
    SessionCompleted,
    SessionWaiting,
    ToolReturned,
)
from cueline.runtime.inline import inline
from cueline.sandboxes.worktree import WorktreeBackend
from cueline.tools.sandbox import sandbox_backend
from tests.scripted import memory_log

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples/sandboxes/branches.py"))
SESSIONS, STARTED = EXAMPLE["SESSIONS"], EXAMPLE["STARTED"]
MINUTES_20 = 1200.0
AT_REST = (ModelStarted, SessionWaiting, SessionCompleted)


class Run:
    """The example on a clock that a test moves; real time passes only for git and the tests."""

    def __init__(self, runtime, sessions):
        self.runtime = runtime
        self.sessions = sessions
        self.clock = runtime.log.clock
        self.real_clock = SystemClock()
        self.most_started = 0

    async def states(self):
        found = WorktreeBackend().find({})
        return Counter(each.state for each in found)

    async def last(self):
        journal, heads = self.runtime.log.journal(), []
        for stream in [each.stream_name for each in self.sessions]:
            for name in (stream, f"{stream}.4.0"):
                head = await self.runtime.log.store.head(name)
                heads += [fact async for _, fact in journal.read(name, max(head.version - 1, 0))]
        return heads

    async def until(self, condition):
        while not await condition():
            self.most_started = max(self.most_started, (await self.states())["started"])
            rests = all(isinstance(each, AT_REST) for each in await self.last())
            await self.clock.advance(60 if rests else 1)
            await self.real_clock.sleep(0.02)  # git and the tests run in processes

    async def all_ask(self):
        return len((await self.runtime.pending()).rows) == SESSIONS

    async def all_wait_stopped(self):
        return (await self.states()) == {"stopped": SESSIONS} and await self.all_ask()

    async def all_ended(self):
        ended = [each for each in await self.last() if isinstance(each, SessionCompleted)]
        return len(ended) == 2 * SESSIONS and not await self.states()


async def facts_of(session):
    return [each.event async for each in session.events()]


async def test_hours_of_six_sessions_in_three_sandboxes(tmp_path, monkeypatch, figures):
    """003-001, 003-005, 003-008, 003-009, 003-012, 003-013, 003-028, 003-036, 003-072 to 003-074,
    003-077: none has an end of its own, each waits without a started sandbox, and goes on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox_backend.cache_clear()
    repository = EXAMPLE["make_repository"](tmp_path / "repository")
    log = replace(memory_log(tmp_path), sandbox_slots=STARTED)
    begun = log.clock.now()
    async with inline(log, scope=set()) as here:
        runtime = Runtime(log, here)
        made = [EXAMPLE["agent_for"](n, repository, MINUTES_20) for n in range(1, SESSIONS + 1)]
        limits = cueline.Limits(max_active_seconds=3.33 * MINUTES_20)
        agents = [each.model_copy(update={"limits": limits}) for each in made]
        sessions = await EXAMPLE["start_all"](runtime, agents)
        run = Run(runtime, sessions)

        await run.until(run.all_wait_stopped)
        asked = log.clock.now()
        await log.clock.advance(10 * 3600)
        assert {"stopped": SESSIONS} == await run.states()
        for each in (await runtime.pending()).rows:
            await runtime.approve(each.id)
        await run.until(run.all_ended)

        facts = [await facts_of(each) for each in sessions]

    hours = (log.clock.now() - begun).total_seconds() / 3600
    figures(f"{hours:.1f} hours, of which {(asked - begun).total_seconds() / 3600:.1f} to ask")
    assert STARTED == run.most_started
    assert hours > 11
    assert SESSIONS == len(facts)
    for told in facts:
        (warned,) = [fact for fact in told if isinstance(fact, LimitWarned) and fact.note]
        assert "You are approaching the time budget. Wrap up current work." == warned.note
        attached = [fact for fact in told if isinstance(fact, SandboxAttached)]
        assert len(attached) > 1  # no second one was made
        assert {1} == {fact.number for fact in attached}
        kinds = {(f.kind, f.cause.code) for f in told if isinstance(f, SessionWaiting)}
        assert {"approval", "child"} <= {kind for kind, _ in kinds}
        first, *_, last = [fact.output for fact in told if isinstance(fact, ToolReturned)]
        assert "FAILED (failures=1)" in first
        assert "No problems found." in last
    assert SESSIONS - STARTED <= len([told for told in facts if "no_slot" in str(told)])
    branches = EXAMPLE["git"](
        repository, "for-each-ref", "--format=%(refname)", "refs/heads/cueline"
    )
    assert SESSIONS == len(branches.split())
    for branch in branches.split():
        assert "Double" == EXAMPLE["git"](repository, "log", "-1", "--format=%s", branch).strip()
