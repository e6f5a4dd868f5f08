"""A log, the sessions in it, and the commands and tools that work for them."""

import json
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import psutil

from cueline.sqlite_library import sqlite_library
from cueline.testing.wait import PATIENCE_SECONDS

CUELINE = [sys.executable, "-m", "cueline"]
ACTS = Path(__file__).with_name("acts.py")
TOOLS = ("look", "put", "pay")
EXTRA = 20
"""So many messages may each take a turn more."""
AGENT = """
name = "{name}"
provider = "scripted"
model = "{script}"
tools = {tools}
[limits]
max_turns = 1000
max_tokens = 100_000_000
[retry]
max_retries = 20
base_seconds = 0.05
factor = 1.0
[breaker]
threshold = 0
[policy]
in_doubt = "tell"
"""


@dataclass
class Tally:
    """What became of the sessions of a lane."""

    logs: int = 0
    sessions: int = 0
    kills: Counter = field(default_factory=Counter)
    lost: int = 0
    repeated: int = 0
    in_doubt: int = 0
    cut_short: int = 0
    """Calls of which the model was told that they were killed."""
    disagreements: int = 0
    zombies: int = 0
    """Events that a former owner appended after the next one."""
    untold: int = 0
    """Children of whose end their parent was not told once."""
    seconds: list = field(default_factory=list)
    """Of each fault of a machine: the time until the last session's end."""
    children: int = 0
    passed: int = 0
    """Moments at which more was spent and reserved than a limit allows."""
    secrets: int = 0
    """Files with a secret."""
    left: int = 0
    """Processes that outlived `cueline down`, or their machine."""
    found: list = field(default_factory=list)
    """A sentence for each that is lost, repeated or disagrees."""

    @property
    def held(self):
        return not self.found

    def fault(self, kind, sentence):
        setattr(self, kind, getattr(self, kind) + 1)
        self.found.append(f"{kind}: {sentence}")


class Ground:
    """A folder with a log, and an agent whose script is drawn by *chance*."""

    longest_seconds = 0.3
    """Of a call."""
    longest_delay = 0.1
    """Of a reply, in seconds."""
    more_tools = ()

    def __init__(self, folder, chance, tally, turns):
        self.folder, self.chance, self.tally = folder, chance, tally
        self.log = folder / "log.db"
        self.acknowledged = defaultdict(list)
        """The hashes of each stream's events that were seen in the log before a kill."""
        self.sent = defaultdict(list)
        """The messages to each session for which `send` ended with 0."""
        self.left = set()
        """What a killed `up` had below it."""
        folder.mkdir(parents=True)
        tools = [f"{ACTS}:{name}" for name in TOOLS]
        self._write_agent("agent.toml", "victim", "script.toml", [*tools, *self.more_tools])
        turns = [self._turn(number) for number in range(1, chance.randint(*turns))]
        end = ['[[reply]]\ntext = "All is done."\n'] * EXTRA
        (folder / "script.toml").write_text("".join([*turns, *end]))

    def _write_agent(self, file, name, script, tools):
        text = AGENT.format(name=name, script=script, tools=json.dumps(tools))
        (self.folder / file).write_text(text)

    def _turn(self, number):
        calls = [self._call(f"{number}.{call}") for call in range(self.chance.randint(1, 4))]
        delay = f"{self.chance.uniform(0, self.longest_delay):.3f}"
        return f"[[reply]]\ndelay_seconds = {delay}\ncalls = [{', '.join(calls)}]\n"

    def _call(self, item):
        tool, seconds = self.chance.choice(TOOLS), self.chance.uniform(0, self.longest_seconds)
        arguments = f'{{ item = "{item}", seconds = {seconds:.3f} }}'
        return f'{{ name = "{tool}", arguments = {arguments} }}'

    def start(self, *words):
        """Start a command, and let it run."""
        return subprocess.Popen(
            [*CUELINE, *words, "--log", str(self.log)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, *words):
        """Run a command to its end."""
        command = [*CUELINE, *words, "--log", str(self.log)]
        return subprocess.run(
            command,
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
        )

    def begin_words(self, session):
        """Return what is typed to start a session in a folder of its own."""
        (self.folder / session).mkdir(exist_ok=True)
        return ("run", "Go", "--agent", "agent.toml", "--workspace", session, "--id", session)

    def streams(self):
        """Return the types and hashes of the events of each stream, as others see them."""
        found = defaultdict(list)
        uri = f"file:{self.log}?mode=ro"
        with (
            suppress(sqlite_library().Error),  # it is being made
            closing(sqlite_library().connect(uri, uri=True)) as log,
        ):
            rows = log.execute(
                "SELECT name, type, hash FROM events JOIN streams ON streams.id = stream "
                "ORDER BY position"
            )
            for name, type_, hash_ in rows:
                found[name].append((type_, hash_))
        return found

    def types(self, session):
        return [type_ for type_, _ in self.streams()[f"session-default/{session}"]]

    def ended(self, session):
        return self.types(session)[-1:] == ["SessionCompleted"]

    def journal(self, session):
        path = self.folder / session / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def at_work(self, session):
        """Return the process that is in a tool now, and the one that guards it."""
        at_work = {}
        for word, key, attempt, _, *pids in self.journal(session):
            at_work[key, attempt] = pids if word == "start" else None
        return [int(pid) for pids in at_work.values() if pids for pid in pids]

    def kill_tool(self, session):
        """SIGKILL a worker that is in a call, or its guardian."""
        pids = self.at_work(session)
        for place in self.chance.sample(range(len(pids)), len(pids)):
            with suppress(psutil.Error):
                process = psutil.Process(pids[place])
                if any(word.endswith("guardian.py") for word in process.cmdline()):
                    self.kill("guardian" if place % 2 else "tool worker", process)
                    return

    def kill(self, kind, *processes):
        """SIGKILL, after a note of what the log says until then."""
        for stream, events in self.streams().items():
            if len(events) > len(self.acknowledged[stream]):
                self.acknowledged[stream] = [hash_ for _, hash_ in events]
        for process in processes:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        self.tally.kills[kind] += 1

    def send(self, session):
        """Say something to a session; sometimes the command is killed on its way."""
        text = f"message {self.chance.random()}"
        sending = self.start("send", session, text)
        if self.chance.random() < 0.3:
            self.pause(0.3)
            if sending.poll() is None:
                self.kill("send", sending)
        if sending.wait(PATIENCE_SECONDS) == 0:
            self.sent[session].append(text)

    def pause(self, seconds, at_least=0.0):
        Event().wait(self.chance.uniform(at_least, seconds))

    def close(self):
        """End what is beside the log."""

    def agrees(self, session):
        """Say whether each step, decided again, gives what was recorded."""
        return self.ask("replay", session, "--check").returncode == 0

    def verified(self):
        """Say whether each chain is intact."""
        return self.ask("audit", "verify").returncode == 0

    def exported(self, session):
        done = self.ask("export", session)
        assert 0 == done.returncode, done.stderr
        return json.loads(done.stdout)
