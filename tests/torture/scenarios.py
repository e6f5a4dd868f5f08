"""A hundred sessions on three machines and one PostgreSQL, and the ways in which these fail."""

import asyncio
import json
import math
import subprocess
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from itertools import pairwise

import psutil

from cueline.agents.agent import Agent
from cueline.client.client import open_client
from cueline.client.document import document
from cueline.client.export import export_of
from cueline.client.redecide import check_of
from cueline.events.log_url import LogUrl
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.postgres_server import PostgresServer, installed
from tests.torture.ground import ACTS, CUELINE, Ground
from tests.torture.lanes import ACTORS, UNDISTURBED
from tests.torture.machines import Machines

SESSIONS = 100
TURNS = (4, 9)
REMOVAL_SECONDS = 30
SILENCE_SECONDS = 12
"""Who is silent for so long counts as dead."""
SETTINGS = (
    f"[cluster]\nremoval_seconds = {REMOVAL_SECONDS}\nstale_seconds = 15\nheartbeat_seconds = 5\n"
)
LEAVE_SECONDS = 60
"""What has lost its cluster has ended after so long."""
HELP = """
[[reply]]
calls = [{ name = "helper", arguments = { goal = "Help" } }]
"""
"""A turn that starts a child session."""
HELPER = """
[[reply]]
calls = [{ name = "pay", arguments = { item = "help", seconds = 0.5 } }]

[[reply]]
text = "I helped."
"""
HELPED_TURN = 2
FAMILY = 2
"""A session and its child."""
_STREAMS = """
SELECT name, type, hash, events.epoch FROM events JOIN streams ON streams.id = stream
ORDER BY position
"""


class MachinesGround(Ground):
    """A log in PostgreSQL, and machines that drive its sessions."""

    longest_seconds = 1.5
    more_tools = ("agent:helper.toml",)
    count = 3
    """Of machines."""

    def __init__(self, folder, chance, tally, turns):
        super().__init__(folder, chance, tally, turns)
        (folder / "cueline.toml").write_text(SETTINGS)
        self._write_agent("helper.toml", "helper", "help.toml", [f"{ACTS}:pay"])
        (folder / "help.toml").write_text(HELPER)
        with ExitStack() as stack:
            self.machines = Machines(self.count)
            stack.callback(self.machines.close)
            network = self.machines.network
            programs = next(iter(installed().values()))
            self.server = PostgresServer(programs, **self._of(network))
            stack.callback(self.server.close)
            self.server.allow(network.addresses)
            self.log = LogUrl.of(f"postgresql://ada@{network.address}/postgres?schema=cueline")
            backend_of(self.log).migrate()
            stack.pop_all()  # it is all there: `close` ends it

    def _turn(self, number):
        return HELP if number == HELPED_TURN else super()._turn(number)

    def _of(self, network):
        return {"listen_addresses": network.address, "max_connections": "300"}

    def start(self, *words):
        head = self.machines.head
        return subprocess.Popen(
            head.within(self.folder, *CUELINE, *words, "--log", str(self.log)),
            env=head.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, *words):
        head = self.machines.head
        command = head.within(self.folder, *CUELINE, *words, "--log", str(self.log))
        return subprocess.run(
            command, env=head.environ, check=False, capture_output=True, text=True
        )

    def up(self):
        """Start a cluster, and `up` on it with a host and a runner for each machine."""
        self.machines.start()
        words = ("up", "--detach", "--address", self.machines.head.gcs)
        asked = (*words, "--hosts", str(self.count), "--runners", str(self.count))
        wait_until(lambda: self.ask(*asked).returncode == 0)

    def begin(self, sessions):
        """Start *sessions*; each has a child in its second turn."""
        asyncio.run(self._begin(sessions))

    async def _begin(self, sessions):
        async with open_client(self.log) as client:
            agent = Agent.from_file(self.folder / "agent.toml")
            for session in sessions:
                place = self.folder / session
                place.mkdir()
                here = agent.model_copy(update={"workspace": place})
                await client.start(here, "Go", id=session)

    def streams(self):
        found = defaultdict(list)
        for name, type_, hash_, _ in self.rows():
            found[name].append((type_, hash_))
        return found

    def rows(self):
        with connected(address_of(self.log)) as log:
            return log.execute(_STREAMS).fetchall()

    def acknowledge(self):
        """Note what the log says until now."""
        for stream, events in self.streams().items():
            self.acknowledged[stream] = [hash_ for _, hash_ in events]

    def count_ended(self):
        """Return how many sessions have ended."""
        with connected(address_of(self.log)) as log:
            asked = "SELECT count(*) FROM events WHERE type = 'SessionCompleted'"
            return log.execute(asked).fetchone()[0]

    def read(self, sessions):
        """Read *sessions* once, for all that is asked of them."""
        self._histories = asyncio.run(self._read(sessions))

    async def _read(self, sessions):
        async with open_client(self.log) as client:
            return {session: await client.history(session) for session in sessions}

    def exported(self, session):
        return json.loads(json.dumps(document(export_of(self._histories[session])), default=str))

    def repeated_help(self):
        """Return the undeclared calls of children that began twice."""
        lines = [line for session in self._histories for line in self.journal(session)]
        began = Counter(key for word, key, *_ in lines if word == "start" and ".2.0/" in key)
        return [key for key, count in began.items() if count > 1]

    def late_starts(self):
        """Yield the calls that a tool began after they had been recorded as lost."""
        for session, history in self._histories.items():
            lost = {
                (f"{history.stream}/{fact.effect}", str(fact.attempt)): recorded.recorded_us
                for recorded, fact in history.events
                if fact.type == "ToolInDoubt" or (fact.type == "ToolFailed" and fact.kind == "lost")
            }
            for word, key, attempt, began, *_ in self.journal(session):
                if word == "start" and float(began) * 1e6 > lost.get((key, attempt), math.inf):
                    yield f"{key}, attempt {attempt}"

    def agrees(self, session):
        return check_of(self._histories[session]).difference is None

    def close(self):
        for process in self.machines.close():
            self.tally.fault("left", f"{self.log}: {process} outlived its machine")
        self.server.close()


def drive(disturb, ground, sessions):
    """Start *sessions*, have *disturb* do something to their machines, and wait for all of them."""
    ground.up()
    ground.begin([UNDISTURBED])
    wait_until(lambda: FAMILY == ground.count_ended())
    share = ground.chance.uniform(0.02, 0.7)
    expected = share * len(ground.rows()) * len(sessions)
    ground.begin(sessions)
    wait_until(lambda: len(ground.rows()) > expected)
    ground.acknowledge()
    at = time.monotonic()
    disturb(ground)
    every = FAMILY * (len(sessions) + 1)
    wait_until(lambda: ground.count_ended() == every, within=3 * PATIENCE_SECONDS)
    ground.tally.seconds.append(time.monotonic() - at)
    ground.read([*sessions, UNDISTURBED])
    ground.ask("down")
    judge_rows(ground.rows(), ground.tally)
    for call in ground.repeated_help():
        ground.tally.fault("repeated", f"{call} began twice")
    for call in ground.late_starts():
        ground.tally.fault("zombies", f"{call} began after it was lost")
    judge_processes(ground)


def kill_node(ground):
    """SIGKILL everything on a machine that is not the head."""
    ground.chance.choice(ground.machines.others).kill()


def freeze_node(ground):
    """SIGSTOP everything on a machine until others have its work, and let it go on."""
    machine = ground.chance.choice(ground.machines.others)
    machine.freeze()
    ground.pause(1.2 * REMOVAL_SECONDS, SILENCE_SECONDS)
    machine.thaw()


def kill_head(ground):
    """SIGKILL everything on the head's machine, and go up again on another cluster."""
    ground.machines.head.kill()
    ground.up()


def kill_database(ground):
    """SIGKILL the server, and start it again."""
    ground.server.kill()
    ground.pause(30)
    ground.server.start()


def drain_node(ground):
    """Announce that a machine goes."""
    machine = ground.chance.choice(ground.machines.others)
    ground.machines.head.drain(machine)


def cut_network(ground):
    """Cut a machine off from the head, or from everything, and plug it in again."""
    network, machine = ground.machines.network, ground.chance.choice(ground.machines.others)
    alone = ground.chance.random() < 0.5
    numbers = (ground.machines.head.number, machine.number)
    if alone:
        network.unplug(machine.number)
    else:
        network.separate(*numbers)
    ground.pause(1.2 * REMOVAL_SECONDS, SILENCE_SECONDS)
    if alone:
        network.plug_in_again(machine.number)
    else:
        network.join(*numbers)


SCENARIOS = {
    "node": kill_node,
    "freeze": freeze_node,
    "head": kill_head,
    "database": kill_database,
    "drain": drain_node,
    "network": cut_network,
}


def judge_rows(rows, tally):
    """Ask the log for events of former owners, and for parents that were not told."""
    epochs = defaultdict(list)
    types = defaultdict(list)
    for name, type_, _, epoch in rows:
        epochs[name].append(epoch)
        types[name].append(type_)
    for name, kinds in list(types.items()):
        told = types[name.replace("session-", "inbox-")].count("ChildEnded")
        if name.startswith("session-") and kinds.count("CallDelegated") != told:
            tally.fault("untold", f"{name} was told of {told} ends of children")
    for name, seen in epochs.items():
        late = sum(after < before for before, after in pairwise(seen))
        for _ in range(late):
            tally.fault("zombies", f"{name}: an event of an owner after that of the next one")


def judge_processes(ground):
    """Wait until nothing of ours runs on any machine, and count what stays."""

    def ours():
        return [p for machine in ground.machines.running for p in machine.processes() if is_ours(p)]

    with suppress(AssertionError):
        wait_until(lambda: not ours(), within=LEAVE_SECONDS)
    for process in ours():
        ground.tally.fault("left", f"{process.cmdline()}")


def is_ours(process):
    with suppress(psutil.Error):
        words = " ".join(process.cmdline())
        return any(f"ray::{actor}" in words for actor in ACTORS) or "guardian.py" in words
    return False
