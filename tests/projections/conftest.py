"""A log in memory, and read models beside it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.codec import Codec
from cueline.events.inbox import StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.message import Cost, TextBlock, ToolCall, Usage
from cueline.events.session import (
    ModelReplied,
    ModelRequested,
    ModelStarted,
    SessionForked,
    SessionStarted,
)
from cueline.events.store import ANY
from cueline.projections.read_model import select
from cueline.projections.session import RunRow, SessionReadModel
from cueline.projections.views import TABLES, Views
from cueline.stores.memory import MemoryStore
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.migration import migrate
from cueline.stores.postgres.views import PostgresViews
from tests.stores.conftest import one_server, servers

__all__ = ["one_server", "servers"]

NOW = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
TOOL = ToolSpec(
    name="write_file",
    description="Write a file.",
    parameters={},
    declared="idempotent",
    target="tools:write_file",
    digest="d1",
)


class Log:
    """A log whose clock ticks a second with each append, and its read models."""

    def __init__(self, views, path=None) -> None:
        self.moment = NOW
        self.path = path
        self.store = MemoryStore(self)
        self.journal = Journal(self.store, Codec(), self.now)
        self.views = views
        self.appends = 0

    def now(self):
        return self.moment

    write = staticmethod(FactWrite)

    async def append(self, stream, *facts, expected=ANY, after=None, actor="agent"):
        self.appends += 1
        self.moment += timedelta(seconds=1)
        write = FactWrite(
            stream=stream, steps=[facts], expected_version=expected, after=after, actor=actor
        )
        return await self.journal.append([write], key=f"k{self.appends}")

    async def tell(self, name, *facts):
        """Append *facts* to a session, and return the read models with them."""
        await self.append(f"session-default/{name}", *facts)
        return await self.caught_up()

    async def ask(self, name, *facts):
        """Append *facts* to a session's inbox, and return the read models with them."""
        await self.append(f"inbox-default/{name}", *facts, actor="user:ann")
        return await self.caught_up()

    async def fork(self, name, parent, version):
        """Begin a session with what another did up to *version*."""
        fact = SessionForked(
            parent=parent,
            version=version,
            hash="ab",
            agent=Facts.AGENT,
            goal="Go on",
            open=True,
            attached=False,
            note=None,
            epoch=1,
        )
        await self.append(
            f"session-default/{name}", fact, expected=version, after=(parent, version)
        )

    async def caught_up(self):
        await self.views.catch_up(self.store)
        return self.views.db

    def dump(self):
        """Return all that is in the file, in the order in which it is there."""
        db = self.views.db
        names = [name for (name,) in db.execute(TABLES)]
        tables = {t: list(db.execute(f"SELECT rowid, * FROM {t}")) for t in names}
        schema = db.execute("SELECT sql FROM sqlite_schema").fetchall()
        return [schema, tables]

    def reopen(self):
        self.views.close()
        self.views = Views(self.path)


def find_session(db, name):
    """Return the session with all of its columns."""
    found = select(db, SessionReadModel, "WHERE stream = ? OR id = ?", [name, name])
    return found[0] if found else None


def find_run(db, name):
    """Return the session as a run."""
    return select(db, RunRow, "WHERE id = ?", [name])[0]


class Facts:
    """Facts to begin with."""

    AGENT = AgentSpec(name="editor", provider="scripted", model="m1", tools=(TOOL,))
    ASKED = StartAsked(agent=AGENT, goal="Tidy up", labels={"team": "docs"}, asked_at=NOW)
    STARTED = SessionStarted(
        agent=AGENT, goal="Tidy up", open=False, attached=False, labels={"team": "docs"}, epoch=1
    )

    @staticmethod
    def requested(turn, attempt=1):
        return ModelRequested(effect=f"{turn}.m", attempt=attempt, digest="aa", prefix_digest="bb")

    @staticmethod
    def replied(turn, *tools, text="", usd=None, model="m1-0101"):
        calls = [ToolCall(id=f"c{n}", name=t, arguments={"n": n}) for n, t in enumerate(tools)]
        return ModelReplied(
            effect=f"{turn}.m",
            attempt=1,
            content=(TextBlock(text=text),) if text else (),
            calls=tuple(calls),
            stop_reason="tool_use" if tools else "end_turn",
            usage=Usage(input=100, output=10, cache_read=7, cache_write=3),
            cost=Cost(usd=Decimal(usd), prices="list") if usd else None,
            model=model,
        )

    def turn(self, number, *tools, **rest):
        effect = f"{number}.m"
        started = ModelStarted(effect=effect, attempt=1)
        return [self.requested(number), started, self.replied(number, *tools, **rest)]


OF_A_FILE = {
    *("test_views.py", "test_views_file.py", "test_work_is_found_by_an_index"),
    "test_who_waits_for_a_runner_is_found_without_a_look_at_those_that_wait_for_others",
}
"""Modules and tests that ask SQLite what only it knows."""


def pytest_collection_modifyitems(items):
    items[:] = [
        item
        for item in items
        if not ({item.path.name, getattr(item, "originalname", "")} & OF_A_FILE)
        or item.path.parent != Path(__file__).parent
        or "[server" not in item.name
    ]


@pytest.fixture(params=["file", "server"])
def log(request, tmp_path):
    if request.param == "file":
        log = Log(Views(path := tmp_path / "log.db-views.db"), path)
    else:
        place = address_of(request.getfixturevalue("one_server").new_log())
        migrate(place)
        log = Log(PostgresViews(place))
    yield log
    log.views.close()


@pytest.fixture
def facts():
    return Facts()


@pytest.fixture
async def busy(log, facts):
    """Return a log with two sessions, one of them with four turns."""
    for name in ("a", "b"):
        await log.append(f"inbox-default/{name}", facts.ASKED)
        await log.append(f"session-default/{name}", facts.STARTED)
    for turn in range(1, 5):
        await log.append("session-default/a", *facts.turn(turn, "write_file", usd="0.1"))
    return log
