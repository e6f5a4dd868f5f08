"""The shipped chain `implement-and-review` on a git repository, killed at events of its log.

    CUELINE_CHAIN_KILLS=20 .venv/bin/python -m pytest tests/ray/test_chain.py

`make test` has 3 kills.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from contextlib import aclosing
from importlib.resources import files
from itertools import cycle, pairwise

import psutil

from cueline import Agent
from cueline.client.runtime import Runtime
from cueline.client.session import Session
from cueline.events.session import ApprovalRequested
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from tests.ray.conftest import ACTS

VERDICT = {"verdict": "issues_found", "issues": ["it is late"]}
AGENT = """
name = "{name}"
provider = "scripted"
model = "{name}-script.toml"
tools = ["read_file", "{acts}:commit"]
{output}
"""
OUTPUT = "[output]\ntype = 'object'\nrequired = ['verdict']"
LINES = {"implement": ["one", "two", "three"], "review": ["four", "five"]}
"""What each agent commits."""
SAID = {"implement": "It is done.", "review": json.dumps(VERDICT)}
KILLS = int(os.environ.get("CUELINE_CHAIN_KILLS", "3"))
ROLES = ("host", "runner")


def turn(words):
    return f"[[reply]]\ndelay_seconds = 0.1\n{words}\n"


def script(name):
    """Return what an agent does: it reads, commits line after line, and reports."""
    calls = [("read_file", '{ path = "file" }')]
    calls += [("commit", f'{{ line = "{line}" }}') for line in LINES[name]]
    turns = [turn(f'calls = [{{ name = "{tool}", arguments = {a} }}]') for tool, a in calls]
    return "".join([*turns, turn(f"text = '{SAID[name]}'")])


def git(repository, *words):
    done = subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True)
    return done.stdout.decode().strip()


def make_repository(folder):
    repository = folder / "repository"
    repository.mkdir(parents=True)
    (repository / "file").write_text("zero\n")
    git(repository, "init", "-q")
    git(repository, "config", "user.name", "test")
    git(repository, "config", "user.email", "test@example.org")
    git(repository, "add", "file")
    git(repository, "commit", "-qm", "begin")
    return repository


def shipped_chain(folder):
    """Return the shipped chain, whose two agents are scripted."""
    folder.mkdir()
    shutil.copy(str(files("cueline") / "agents/chains/implement-and-review.toml"), folder)
    for name in LINES:
        output = OUTPUT if name == "review" else ""
        (folder / f"{name}.toml").write_text(AGENT.format(name=name, acts=ACTS, output=output))
        (folder / f"{name}-script.toml").write_text(script(name))
    return Agent.from_file(folder / "implement-and-review.toml")


class Chain:
    """One run of the chain, on a repository of its own."""

    def __init__(self, world, agent, name):
        self.world, self.name = world, name
        self.folder = world.folder / name
        self.repository = make_repository(self.folder)
        self.agent = agent.model_copy(update={"workspace": self.repository})
        self.runtime = Runtime(world.log, world.here)
        self.events = []
        """Those of its tree, as they were seen in the log."""
        self.killed_at = None
        """The position of the log's last event when a process was dead."""
        self.granted = []
        """The calls in doubt that a person had run again."""

    async def run(self, boundary=None, role=None):
        """Run it, and kill who has that *role* once so many events are seen; return the result."""
        start = await self.world.log.store.last_position()
        session = await self.runtime.start(self.agent, id=self.name, parameters={"goal": "Go"})
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(self.world.log.store.follow(start)) as followed,
        ):
            async for event in followed:
                if not event.stream.partition("/")[2].startswith(self.name):
                    continue
                self.events.append(event)
                if len(self.events) == boundary:
                    await self.kill(role)
                if event.type == "ApprovalRequested":
                    await self.answer(event.stream)
                if (event.stream, event.type) == (session.stream_name, "SessionCompleted"):
                    return await session.result()
        raise AssertionError("it is followed until then")

    async def kill(self, role):
        await await_until(lambda: self.living(role))
        [victim] = self.living(role)
        os.kill(victim, signal.SIGKILL)
        await await_until(lambda: not lives(victim))
        self.killed_at = await self.world.log.store.last_position()

    def living(self, role):
        return [each.pid for each in self.world.presences(role) if lives(each.pid)]

    async def answer(self, stream):
        """Say as a person what became of a call in doubt: the repository knows."""
        asked = [f for f in await self.world.facts(stream) if isinstance(f, ApprovalRequested)][-1]
        key = f"{stream}/{asked.effect}"
        if key in self.commits():
            resolution = "happened"
        else:
            git(self.repository, "checkout", "-q", "file")
            self.granted.append(key)
            resolution = "run_again"
        await Session(self.runtime, stream).approve(asked, resolution=resolution)

    def commits(self):
        return git(self.repository, "log", "--format=%s").splitlines()

    def journal(self):
        """Return the undeclared calls that have begun."""
        return (self.folder / "journal").read_text().splitlines()

    def outcome(self):
        """Return what is left of it, without its name: what was done, and who was told."""
        kinds = ("StartAsked", "SessionCompleted", "ChildEnded")
        told = Counter((event.stream, event.type) for event in self.events if event.type in kinds)
        lines = (self.repository / "file").read_text().split()
        return json.loads(
            json.dumps([self.commits(), lines, sorted(told.items())]).replace(self.name, "NAME")
        )


# I4, I5, 003-050, 003-051, 003-057, 003-075
async def test_a_chain_whose_host_or_runner_is_killed_at_an_event_ends_the_same(world_of, figures):
    async with world_of() as world:
        agent = shipped_chain(world.folder / "agents")
        async with world.driven():
            whole = Chain(world, agent, "whole")
            expected = await whole.run()
            assert (VERDICT, 6) == (expected.value, len(whole.commits()))
            ends = [n for n, (_, after) in enumerate(pairwise(whole.events), 1) if after.seq == 0]
            assert KILLS <= len(ends)
            boundaries = [ends[number * len(ends) // KILLS] for number in range(KILLS)]
            for boundary, role in zip(boundaries, cycle(ROLES), strict=False):
                chain = Chain(world, agent, f"killed-{boundary}")

                assert expected == await chain.run(boundary, role)
                assert whole.outcome() == chain.outcome()
                repeated = Counter(chain.journal()) - Counter(chain.commits())
                assert repeated <= Counter(chain.granted)
                last = sum(event.position <= chain.killed_at for event in chain.events)
                point = f"{last} of {len(whole.events)} ({chain.events[last - 1].type})"
                figures(f"{role} killed at {boundary}, dead at {point}, {len(chain.granted)} again")
        assert [] == world.troubles


def lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
