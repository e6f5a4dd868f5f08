import asyncio
import os
import shutil
import signal
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest
import ray

from cueline.actors.inbox import ask_start, new_id
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.client.client import Client
from cueline.client.session import Session
from cueline.cluster.command import command
from cueline.cluster.connection import connect_ray
from cueline.deciders.fleet import HOSTS, RUNNERS, Range
from cueline.events.inbox import StartAsked
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.open_log import open_log
from cueline.runtime.place import Place
from cueline.testing.wait import PATIENCE_SECONDS, await_until

ACTS = Path(__file__).with_name("acts.py")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.ray)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


# No longer than its tests: its processes come and go, and belong to whoever runs next.
@pytest.fixture(scope="package")
def cluster():
    # Not the folder that pytest would give: sockets have to have short names.
    folder = tempfile.mkdtemp(prefix="cl-", dir="/tmp")
    # What runs there sees what is set now, and dies by a test's hand alone: Ray kills
    # its processes where little memory is left, whoever took it.
    environ = {"RAY_TESTS_KEY": "sk-test-0123456789", "RAY_memory_monitor_refresh_ms": "0"}
    environ["RAY_metrics_report_interval_ms"] = "1000"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RAY_TMPDIR": folder, **environ}.items():
            patch.setenv(name, value)
        with connect_ray(None, "cueline-tests") as connection:
            yield connection
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def world_of(cluster, tmp_path):
    @asynccontextmanager
    async def open_world():
        async with open_log(tmp_path / "log.db") as log:
            yield World(log, tmp_path, cluster)

    return open_world


@pytest.fixture
def on_cluster(world_of):
    """Return what drives scripted sessions on the cluster, in a namespace of its own."""

    @asynccontextmanager
    async def start(script, *, sessions=1, **settings):
        async with world_of() as world:
            await world.ask(script, sessions, **settings)
            async with world.driven():
                yield world

    return start


class World:
    """A log, its sessions, and the actors that drive them."""

    def __init__(self, log, folder, cluster):
        self.log = log
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.cluster = cluster
        self.streams = []
        self.scope = set()
        self.place = None
        self.troubles = []

    async def ask(self, script, sessions, *, tools=(), **settings):
        spec = agent_to_record(self.agent(script, tools, **settings))
        for _ in range(sessions):
            asked = StartAsked(agent=spec, goal="go", asked_at=self.log.clock.now())
            self.streams.append(await ask_start(self.log.journal(spec), new_id(), asked))
        self.scope.update(self.streams)

    def agent(self, script, tools=(), **settings):
        path = self.folder / f"{sha256(script.encode()).hexdigest()[:8]}.toml"
        path.write_text(script)
        fields = {"provider": "scripted", "model": str(path), **settings}
        acts = [name if ":" in name else f"{ACTS}:{name}" for name in tools]
        return Agent(name="worker", tools=acts, workspace=self.workspace, **fields)

    @asynccontextmanager
    async def driven(self, *, hosts=1, runners=1):
        factory = actor_factory_of(self.log)
        async with command(
            self.cluster,
            namespace_of(factory.log_id),
            factory,
            store=self.log.store,
            board=self.log.board,
            scope=self.scope,
            on_trouble=lambda stream, error: self.troubles.append((stream, error)),
            hosts=hosts,
            runners=runners,
        ) as self.place:
            await self.place.place(self.streams)
            yield

    @property
    def here(self):
        """Return the place of these sessions, or one that runs none if nothing is driven."""
        return self.place or Place(self.log.url)

    @property
    def session(self):
        return Session(Client(self.log, self.here), self.streams[0])

    @property
    def fleet(self):
        return self.place.loops.fleet

    def scale(self, *, hosts, runners=1):
        """Have so many hosts and runners from now on."""
        self.fleet.want({HOSTS: Range(hosts, hosts), RUNNERS: Range(runners, runners)})

    async def presence(self, role):
        """Return who lives in that role, once it is known here: its work may come first."""
        await await_until(lambda: self.presences(role))
        return self.presences(role)[0]

    def presences(self, role):
        return [m.presence for m in self.fleet.members() if m.role == role and m.presence]

    async def kill(self, role):
        """SIGKILL the living one of that role."""
        os.kill((await self.presence(role)).pid, signal.SIGKILL)

    async def kill_in_a_call(self, role):
        """SIGKILL the living one of that role while a tool is at work, which then may end."""
        await self.begun()
        await self.kill(role)
        self.let_go()

    async def pid_of(self, role):
        context = self.fleet.context
        actor = ray.get_actor(context.named(role), context.namespace)
        return await actor.__ray_call__.remote(lambda _: os.getpid())

    def journal_lines(self):
        path = self.workspace / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    async def begun(self, count=1):
        await await_until(lambda: len(self.journal_lines()) >= count)

    def let_go(self):
        (self.workspace / "go").touch()

    async def facts(self, stream=None):
        return [fact async for _, fact in self.log.journal().read(stream or self.streams[0])]

    async def types(self, stream=None):
        return Counter(fact.type for fact in await self.facts(stream))

    async def fact(self, kind, stream=None):
        """Wait for the first fact of that kind, and return it."""
        session = Session(Client(self.log, self.here), stream or self.streams[0])
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await anext(f async for _, f, _ in session.follow() if isinstance(f, kind))

    async def result(self, stream=None):
        """Wait for the end, whatever it waits for until then."""
        session = Session(Client(self.log, self.here), stream or self.streams[0])
        facts = (fact async for _, fact, _ in session.follow())
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await anext(f.result async for f in facts if f.type == "SessionCompleted")
