"""A host serves live text to watchers in other processes."""

import asyncio
from types import SimpleNamespace

import pytest

from cueline.actors.live_text import LiveTextHub, LiveTextServer, TextDelta, ToolProgress, receive
from cueline.actors.model_port import Delta
from cueline.events.sanitize import Redactor
from cueline.testing.wait import await_until


@pytest.fixture
def hub():
    return LiveTextHub()


@pytest.fixture
async def server(hub):
    server = LiveTextServer(hub)
    await server.start()
    yield server
    await server.close()


def say(hub, text, stream="one", attempt=1):
    hub.sink(stream, "1.m", attempt, Redactor())(Delta("text", text))


@pytest.fixture
async def watch(server):
    tasks = []

    def watch(stream="one", token=None):
        came = []
        receiving = receive(server.address, token or server.token, stream, came.append)
        tasks.append(asyncio.create_task(receiving))
        return came, tasks[-1]

    yield watch
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_watcher_gets_the_pieces_of_its_session(hub, watch):
    came, _ = watch()
    await await_until(lambda: hub.watchers("one"))

    say(hub, "nobody", "two")
    say(hub, "Good\n„day“.")

    await await_until(lambda: came)
    assert [TextDelta("Good\n„day“.", "text", "1.m", 1)] == came


async def test_several_watchers_of_one_session_get_the_same(hub, watch):
    (first, _), (second, _) = watch(), watch()
    await await_until(lambda: len(hub.watchers("one")) == 2)

    say(hub, "Good")

    await await_until(lambda: first and second)
    assert first == second


async def test_without_the_token_nothing_is_served(hub, watch):
    came, receiving = watch(token="guessed")

    await receiving

    assert ([], ()) == (came, hub.watchers("one"))


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n", b"{}\n", b"", b"x" * 100_000])
async def test_what_is_no_watcher_is_hung_up_on(server, said):
    host, port = server.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    writer.write(said)
    writer.write_eof()

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await reader.readexactly(1)
    writer.close()


async def test_a_watcher_that_leaves_is_forgotten(hub, watch):
    _, receiving = watch()
    await await_until(lambda: hub.watchers("one"))

    receiving.cancel()

    await await_until(lambda: not hub.watchers("one"))


# D24: what waits for a watcher is bounded.
async def test_a_watcher_that_reads_nothing_holds_nothing_up(hub, server):
    host, port = server.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(b'{"token": "%s", "stream": "one"}\n' % server.token.encode())
    assert b"{}\n" == await reader.readline()
    (pieces,) = hub.watchers("one")

    for attempt in range(1, 200):
        say(hub, "a" * 100_000, attempt=attempt)
        await asyncio.wait_for(asyncio.to_thread(lambda: None), 10)  # lets the server write

    assert pieces.lost
    writer.close()


async def test_the_end_of_a_host_ends_its_connections(hub, server, watch):
    _, receiving = watch()
    await await_until(lambda: hub.watchers("one"))

    await server.close()
    await receiving

    assert () == hub.watchers("one")


async def test_a_host_that_is_not_there_is_an_error_of_the_connection(server):
    await server.close()

    with pytest.raises(OSError):  # noqa: PT011 - of any kind
        await receive(server.address, server.token, "one", print)


async def test_where_it_cannot_listen_it_has_no_address(hub):
    server = LiveTextServer(hub)

    await server.start("192.0.2.1")

    assert "" == server.address
    await server.close()


async def test_a_watcher_in_another_process_gets_the_progress_of_tools(hub, watch):
    hub.redactors["one/1.0"] = Redactor()
    came, _ = watch()
    await await_until(lambda: hub.watchers("one"))

    hub.report(SimpleNamespace(key="one/1.0", session="one", effect="1.0"), 0.5, "half")

    await await_until(lambda: came)
    assert [ToolProgress("1.0", 0.5, "half")] == came
