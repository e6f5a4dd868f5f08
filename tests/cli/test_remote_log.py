"""The command line and the client with the log of a server: the same as with a log of their own."""

import asyncio
import json
import os
import re
import signal
import subprocess
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import pytest

import cueline
from cueline.client.client import open_client
from cueline.client.context import acting_for
from cueline.client.live_text import live_text
from cueline.client.runtime import open_runtime
from cueline.client.tokens import issue_token
from cueline.deciders.person import Person
from cueline.errors import (
    ConfigError,
    ForbiddenError,
    LogUnavailableError,
    MissingBlobError,
    NotPendingError,
    RejectedError,
    UnknownOutcomeError,
    UnknownSessionError,
)
from cueline.events.blob_ref import blobs_in
from cueline.events.log_url import LogUrl
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from tests.cli.conftest import CUELINE
from tests.cli.processes import holding, text_in, told_of
from tests.gateway.test_serve import TOKEN

ASKS = """
[[reply]]
text = "The list is old."
calls = [{ name = "delete_file", arguments = { path = "list.txt" } }]

[[reply]]
text = "Done."
"""
SLOW = """
[[reply]]
turn = 1
attempt = 1
text = "First."
calls = [{ name = "list_files", arguments = {} }]

[[reply]]
turn = 2
attempt = 1
delay_seconds = 120
text = "Too late."

[[reply]]
turn = 2
text = "Here I am."
"""
SPEAKS = """
[[reply]]
text = "I look."
calls = [{ name = "hold", arguments = { name = "first" } }]

[[reply]]
text = "Nobody ever wrote that down, and on and on and on."
calls = [{ name = "hold", arguments = { name = "second" } }]
chunk_seconds = 0.05

[[reply]]
text = "Done."
"""


class Server:
    """A `cueline serve` of a log in *folder*, which can be killed and started again."""

    def __init__(self, folder, log):
        self.folder, self.log, self.port, self.process = folder, log, 0, None

    def start(self):
        words = [
            *CUELINE,
            "serve",
            "--json",
            "--port",
            str(self.port),
            "--log",
            str(self.log),
        ]
        self.process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=os.environ | {"CUELINE_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = json.loads(self.process.stdout.readline())["url"].removesuffix("/v1")
        self.port = int(self.url.rpartition(":")[2])

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.communicate()


@pytest.fixture
def server(shell, monkeypatch):
    """A server of the shell's log."""
    monkeypatch.setenv("CUELINE_TOKEN", TOKEN)
    made = Server(shell.folder, shell.log)
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def one_server(tmp_path_factory):
    """A server of a log in which each test has sessions of names of its own."""
    folder = tmp_path_factory.mktemp("served")
    made = Server(folder, folder / "log.db")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def shared(one_server, shell, monkeypatch):
    """That server, for somebody who has its token."""
    monkeypatch.setenv("CUELINE_TOKEN", TOKEN)
    return one_server


def plain(text, *names):
    """Return output without what differs between any two runs."""
    for name in names:
        text = text.replace(f" --log {name}", "").replace(name, "LOG")
    text = re.sub(r"connecting to .*\n", "", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? ?(s|ms|m)\b( \d\d s)?", "SECONDS", text)
    text = re.sub(r"\b\d\dh \d\dm\b", "SECONDS", text)
    text = re.sub(r"(inline|server)-[0-9a-f]{12}", "PROCESS", text)
    text = re.sub(
        r'"(position|seconds|pid|beat_seconds|hash|payload_hash)": [^,\n]*', r'"\1"', text
    )
    text = re.sub(r"[0-9a-f]{64}", "HASH", text)
    return re.sub(r" +", " ", text)


WISHES = [
    "run Delete -a agent.toml --id one",
    "run Delete -a agent.toml --id two --json",
    "pending",
    "pending --json",
    "approve one.1.0.1 --note fine",
    "deny two.1.0.1 --reason no --json",
    "resume one",
    "resume two",
    "approve one.1.0.1",
    "send one late",
    "fork one --at 4 --goal Again --id three",
    "pause three",
    "budget raise three --max-turns 50",
    "stop three",
    "resume three",
    "run Delete -a agent.toml --id four",
    "budget raise four --max-turns 60",
    "pause four",
    "stop four --json",
    "tail -f four -n 1",
    "resume four",
    "show nobody",
    "list --status nonsense",
    "runs",
    "breakers reset nothing",
    "submit crawler Go",
]
SERVED = {
    "stop four --json": "stop four --json",  # the server's process ends it, not this one
    "resume one": "tail -f one",  # the server continues a session that waited for an answer
    "resume two": "tail -f two",
}
READS = [
    "list",
    "list --json",
    "list --status waiting --json",
    "show one",
    "show one --json",
    "show three --all --full",
    "show four --compacted",
    "pending --json",
    "tail one",
    "tail thr -n 3 --json",
    "tail -f two",
    "replay one --check",
    "replay three --json",
    "costs",
    "costs --by model --json",
    "audit --session one",
    "audit --json",
    "audit verify",
    "budget show one",
    "export one --format events",
    "export two",
    "workflow show one",
    "runs --json",
    "blueprints",
    "runners",
    "breakers",
    "fleet",
    "sandboxes",
    "sandboxes --all --json",
    "status",
    "show nobody",
]


def test_each_wish_answers_as_on_a_log_of_ones_own(shell, server):
    said = []
    for log, work in ((str(shell.folder / "other.db"), "work_a"), (server.url, "work_b")):
        shell.agent(ASKS, tools=("list_files", "delete_file"))
        (shell.folder / work).mkdir()
        (shell.folder / work / "list.txt").touch()
        agent = shell.folder / "agent.toml"
        agent.write_text(agent.read_text().replace('"work"', f'"{work}"'))
        answers = {}
        for words in WISHES:
            command = SERVED.get(words, words) if log == server.url else words
            if words.startswith("tail") and log == server.url:
                shell.wait_for("four", "SessionStopped")  # its host works in another process
            done = shell(*command.split(), "--log", log)
            told = plain(done.output, log, work, str(shell.log))
            told = re.sub(
                r"; nothing drives it now.*|, then resume|\n cueline resume \w+", "", told
            )
            told = told.replace('"elsewhere"', '"nobody"')
            answers[words] = (done.exit_code, None if words in SERVED else told)
        said.append(answers)
    here, there = said
    differ = {words: (here[words], there[words]) for words in WISHES if here[words] != there[words]}

    assert {} == differ
    assert {0, 2, 3} <= {int(code) for code, _ in there.values()}


def test_each_question_is_answered_as_from_the_log_itself(shell, server):
    shell.agent(ASKS, tools=("list_files", "delete_file"))
    (shell.folder / "work" / "list.txt").touch()
    for words in (
        "run Delete -a agent.toml --id one",
        "run Delete -a agent.toml --id two --auto-approve",
        "approve one.1.0.1",
        "tail -f one",
        "fork one --at 4 --id three",
        "run Delete -a agent.toml --id four",
    ):
        assert shell(*words.split(), "--log", server.url).exit_code in {0, 3}, words

    differ = {}
    for words in READS:
        here, there = (shell(*words.split(), "--log", log) for log in (str(shell.log), server.url))
        told = [plain(each.output, server.url, str(shell.log)) for each in (here, there)]
        if (here.exit_code, told[0]) != (there.exit_code, told[1]):
            differ[words] = told

    assert {} == differ


async def all_of(happening):
    return [each async for each in happening]


def streamed(shell, log, session):
    """Return the types of the events that `run --json-stream` prints, and its last line."""
    words = ["run", "Go", "-a", "agent.toml", "--id", session, "--json-stream", "--log", log]
    *events, last = map(json.loads, shell(*words).stdout.splitlines())
    return [each["type"] for each in events], last


def test_the_stream_of_a_run_is_that_of_a_local_one(shell, shared):
    shell.agent(shell.two_turns, tools=("list_files",))
    here, there = (
        streamed(shell, log, "streamed") for log in (str(shell.folder / "other.db"), shared.url)
    )

    assert here == there
    assert "SessionCompleted" == here[0][-1]


# 001-018
def test_live_text_arrives_over_the_network(shell, shared):
    shell.agent(SPEAKS, tools=(holding(shell),))

    async def spoken():
        until = asyncio.timeout(2 * PATIENCE_SECONDS)
        async with until, cueline.connect(shared.url, token=TOKEN) as client:
            session = await client.start("agent.toml", "Go")
            streaming = asyncio.create_task(all_of(session.stream()))
            came = []
            with live_text(client.log, session.stream_name) as pieces:
                await await_until(partial(told_of, "1.0", pieces))
                (shell.folder / "first").touch()
                while not text_in(came, "2.m").endswith("on."):
                    came += await pieces.take()
            (shell.folder / "second").touch()
            return came, await streaming, await session.result()

    came, streamed, result = asyncio.run(spoken())

    assert "Nobody ever wrote that down, and on and on and on." == text_in(came, "2.m")
    assert len(came) > 3
    pieces = [each for each in streamed if isinstance(each, cueline.TextDelta)]
    # An event may come before the last pieces of its reply, which are left out then.
    assert text_in(came, "2.m").startswith(text_in(pieces, "2.m"))
    versions = [each.version for each in streamed if not isinstance(each, cueline.TextDelta)]
    assert [*range(1, len(versions) + 1)] == versions
    assert "Done." == result.text


# 001-018, 002-016
def test_a_tail_goes_on_after_the_server_was_killed_and_started_again(shell, server):
    shell.agent(SLOW, tools=("list_files",))
    shell("run", "Go", "-a", "agent.toml", "--id", "one", "--detach", "--log", server.url)
    shell.wait_for("one", "ModelStarted", times=2)
    tail = shell.start("tail", "-f", "one", "-n", "100", "--json", "--log", server.url)
    first = tail.stdout.readline()
    server.kill()
    server.start()
    resumed = shell("resume", "one", "--log", server.url)
    rest = tail.stdout.read()
    tail.wait()

    told = [json.loads(line) for line in (first + rest).splitlines() if line.startswith("{")]
    assert 0 == resumed.exit_code == tail.returncode, resumed.output
    assert list(range(1, len(told) + 1)) == [each["version"] for each in told]
    assert shell.types("one") == [each["type"] for each in told]


@asynccontextmanager
async def cutting(port, first):
    """Listen before the server at *port*; the answer to the first request with *first* is lost."""
    lost = []

    async def connected(reader, writer):
        far, back = await asyncio.open_connection("127.0.0.1", port)

        async def there():
            while data := await reader.read(65536):
                if first in data and not lost:
                    lost.append(data)
                back.write(data)

        async def here():
            cut = False
            while not cut and (data := await far.read(65536)):
                cut = len(lost) == 1
                if cut:
                    lost.append(data)  # what the server answered
                else:
                    writer.write(data)
            writer.close()

        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(there(), here())
        back.close()
        writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", lost
    finally:
        listening.close()


def test_a_request_whose_answer_was_lost_counts_once(shell, shared):
    shell.agent(ASKS, tools=("list_files", "delete_file"))

    async def sent():
        async with cutting(shared.port, b"POST /v1/sessions/sent/messages") as (url, lost):
            async with cueline.connect(url, token=TOKEN) as client:
                await client.start("agent.toml", "Go", id="sent", open=True)
                receipt = await client.send("sent", "And?")
            return receipt, lost

    receipt, lost = asyncio.run(sent())
    lines = shell("audit", "--type", "MessageSent", "--json", "--log", str(shared.log)).stdout
    sent = [json.loads(line) for line in lines.splitlines()]

    assert 2 == len(lost)
    assert [receipt.version] == [each["version"] for each in sent]


def test_a_start_whose_answer_was_lost_is_reported_with_its_id(shell, shared):
    shell.agent(ASKS, tools=("list_files", "delete_file"))

    async def started():
        cut = cutting(shared.port, b"POST /v1/log/start")
        async with cut as (url, _), cueline.connect(url, token=TOKEN) as client:
            with pytest.raises(UnknownOutcomeError, match="cueline resume started"):
                await client.start("agent.toml", "Go", id="started")
            return await client.find("started")

    assert "session-default/started" == asyncio.run(started())


def connected(url, token=TOKEN):
    async def opened():
        async with cueline.connect(url, token=token):
            pass

    asyncio.run(opened())


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("http://", ConfigError, "http://: it names no server; write `https://` and its name"),
        ("http://127.0.0.1:1", LogUnavailableError, "cannot be reached"),
        ("http://example.com", ConfigError, "use https://"),
        ("https://me:secret@example.com", ConfigError, "CUELINE_TOKEN"),
        ("https://example.com?token=secret", ConfigError, "CUELINE_TOKEN"),
        ("a.db", ConfigError, "open_runtime"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secret(url, error, said):
    with pytest.raises(error, match=said) as refused:
        connected(url)

    assert "secret" not in str(refused.value)


def test_an_unknown_token_is_refused_and_never_shown(shared, monkeypatch):
    with pytest.raises(LogUnavailableError, match="refuses the token") as refused:
        connected(shared.url, "cue_not-this-one")
    monkeypatch.delenv("CUELINE_TOKEN")
    with pytest.raises(ConfigError, match="set CUELINE_TOKEN"):
        connected(shared.url, None)

    assert "cue_not" not in str(refused.value)
    assert "cue_not" not in repr(replace(LogUrl.of(shared.url), token="cue_not-this-one"))


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (200, "text/html", "no `cueline serve`"),
        (404, "text/html", "no `cueline serve`"),
        (404, "application/problem+json", "it is older"),
    ],
)
async def test_another_server_and_an_older_cueline_are_named(status, kind, said):
    problem = {"type": "about:blank", "title": "Not Found", "detail": "Not Found", "status": 404}

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps(problem).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        url = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}"
        with pytest.raises(LogUnavailableError, match=said):
            await asyncio.to_thread(connected, url)


async def test_a_token_does_from_afar_what_its_scopes_say(shell, shared):
    agent = shell.agent(ASKS, tools=("list_files", "delete_file"))
    async with open_client(shared.log) as client:
        reads, sends = [
            (await issue_token(client, "ada", scopes=[scope])).text for scope in ("read", "send")
        ]
    async with cueline.connect(shared.url) as client:
        await client.start(agent, "Go", id="scoped")
    async with cueline.connect(shared.url, token=reads) as client:
        assert [] != [each async for each in client.log.store.read("session-default/scoped")]
        with pytest.raises(ForbiddenError, match="`send`"):
            await client.send("scoped", "And?")
    async with cueline.connect(shared.url, token=sends) as client:
        with pytest.raises(ForbiddenError, match="`admin`"):
            await client.start(agent, "Go", id="refused")
        with pytest.raises(UnknownSessionError):
            await client.show("refused")


# C46
async def test_a_tenant_reads_only_the_streams_of_its_own_from_afar(shell, shared):
    agent = shell.agent(ASKS, tools=("list_files", "delete_file"))
    async with open_runtime(shared.log, on="inline") as runtime:
        token = (await issue_token(runtime, "ada", scopes=["send"], tenant="acme")).text
        await (await runtime.start(agent, "Go", id="theirs")).result()
        acme = acting_for(runtime, Person("ada", "acme", frozenset({"admin"})))
        await (await acme.start(agent, "Go", id="mine")).result()
        theirs = await runtime.log.store.put_blob(b"of nobody's session")
    async with cueline.connect(shared.url, token=token) as client:
        store, streams = client.log.store, ["session-acme/mine", "session-default/theirs"]
        heads = await store.heads([*streams, "token-default/all"])
        first = await anext(store.follow(0))
        mine = [each.stream async for each in store.read(streams[0])]
        for stream in (streams[1], "inbox-default/theirs", "approval-default/theirs.1.0.1"):
            with pytest.raises(RejectedError):
                await anext(store.read(stream))
        with pytest.raises(UnknownSessionError):
            await client.history("default:theirs")
        (shared,) = blobs_in((await anext(store.read(streams[0]))).payload)
        assert await store.get_blob(shared)
        with pytest.raises(MissingBlobError):
            await store.get_blob(theirs)

    assert {"session-acme/mine"} == {first.stream, *mine}
    assert [6, 0, 0] == [each.version for each in heads.values()]


async def test_the_log_itself_is_neither_changed_nor_read_whole_from_afar(shared):
    async with cueline.connect(shared.url) as client:
        with pytest.raises(RejectedError):
            await client.log.store.append([], "key")
        with pytest.raises(RejectedError):
            await anext(client.log.store.read("token-default/all"))
        with pytest.raises(NotPendingError):
            await client.approve("nobody.1.0.1")
