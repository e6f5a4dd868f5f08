"""Reaching people: a command that is run, a URL that is called."""

import asyncio
import json
import sys

import pytest

from cueline.agents import hook as module
from cueline.agents.hook import run_hook
from cueline.events.agent import Hook
from cueline.runtime.loop import run
from cueline.testing.wait import PATIENCE_SECONDS

NEWS = json.dumps({"tool": "deploy"}).encode()
ENVIRON = {"TOKEN": "secret-value", "HOME": "/root"}


def python(code):
    return Hook(on="asked", command=(sys.executable, "-c", code))


async def told(hook, environ=ENVIRON):
    return await run_hook(hook, NEWS, environ, hidden={"TOKEN"})


@pytest.mark.parametrize("reads", [("cp", "/dev/stdin"), ("sh", "-c", 'cat > "$0"')])
async def test_a_command_gets_the_news_on_its_standard_input(tmp_path, reads):
    file = tmp_path / "news"

    assert await told(Hook(on="asked", command=(*reads, str(file)))) is None

    assert NEWS == file.read_bytes()


# I11
async def test_a_command_does_not_see_what_is_hidden(tmp_path):
    file = tmp_path / "environ"

    await told(python(f"import os; open({str(file)!r}, 'w').write(str(dict(os.environ)))"))

    assert "HOME" in file.read_text()
    assert "secret-value" not in file.read_text()


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        (python("import sys; sys.exit(3)"), "it ended with 3"),
        (Hook(on="asked", command=("no-such-program-here",)), "FileNotFoundError"),
        (Hook(on="asked", url="http://127.0.0.1:9/"), "ConnectError"),
        (Hook(on="asked", url="nonsense"), "UnsupportedProtocol"),
        (Hook(on="asked", url="http://127.0.0.1:port/"), "InvalidURL"),
    ],
)
async def test_whatever_goes_wrong_is_told(hook, problem):
    assert problem in await told(hook)


# I11: a URL that holds a token is named by its variable.
async def test_a_url_may_be_in_a_variable():
    hook = Hook(on="asked", url="$HOOK_URL")

    assert "HOOK_URL: the variable with the hook's URL is not set" in await told(hook)
    assert "ConnectError" in await told(hook, {"HOOK_URL": "http://127.0.0.1:9/"})


# I11: it is neither the password nor the whole URL, which is all that is taken out.
async def test_no_part_of_a_url_that_is_none_is_told():
    hook = Hook(on="asked", url="$HOOK_URL")

    assert "hunter2" not in await told(hook, {"HOOK_URL": "https://ada:hunter2/x@example.com/"})


async def test_a_command_that_takes_too_long_is_killed(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.05)

    assert "longer than 0.05 s" in await told(python("import time; time.sleep(60)"))


async def test_what_a_command_started_ends_with_it():
    # I12: the connection is open as long as anybody holds it.
    held = asyncio.get_running_loop().create_future()

    async def hold(*connection):
        held.set_result(connection)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = f"""
import socket, subprocess
connection = socket.create_connection(("127.0.0.1", {port}))
connection.set_inheritable(True)
subprocess.Popen(["sleep", "60"], close_fds=False)
connection.send(b"x")
connection.recv(1)
"""
    running = asyncio.create_task(told(python(code)))
    reader, writer = await asyncio.wait_for(held, PATIENCE_SECONDS)
    assert b"x" == await reader.read(1)

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert b"" == await asyncio.wait_for(reader.read(1), PATIENCE_SECONDS)
    writer.close()
    server.close()


@pytest.mark.parametrize(("status", "problem"), [(204, None), (500, "it answered 500")])
async def test_a_url_is_sent_the_news(status, problem):
    heard = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        heard.set_result((head, await reader.readexactly(len(NEWS))))
        writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    assert problem == await told(Hook(on="asked", url=f"http://127.0.0.1:{port}/ask"))

    head, body = await heard
    assert (True, NEWS) == (head.startswith(b"POST /ask "), body)
    server.close()


# It was heard by then; and what comes after the head may have no end.
async def test_what_a_url_has_to_say_is_not_read():
    async def serve(reader, writer):
        await reader.readexactly(1)
        writer.write(b"HTTP/1.1 200 Said\r\nContent-Length: 1000\r\n\r\n")
        await reader.read()  # until the other side hangs up
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    assert None is await told(Hook(on="asked", url=f"http://127.0.0.1:{port}/ask"))
    server.close()


# In uvloop, in which commands run, as well.
def test_a_command_need_not_read_what_it_is_told():
    async def eight_times():
        return {await told(Hook(on="asked", command=("true",))) for _ in range(8)}

    assert {None} == run(eight_times())
