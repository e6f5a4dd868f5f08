"""The way of an isolated command to the hosts of its agent's file: an HTTP proxy outside.

`isolation.forwarder` gives this process a socket that listens in the network of the command, so
only this command reaches it. Names are resolved here, and each address is checked as for
the HTTP tools.
"""

import asyncio
import re
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from threading import Thread
from typing import Final, NamedTuple

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import HOST_RULE, Isolation
from cueline.tools.http_access import checked_addresses, refusal

_LONGEST_HEAD: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_MOST: Final = 100
"""The most connections of a command at a time; each takes two descriptors of this process."""
_SECONDS: Final = 30.0
"""The time for a request, and for a connection to its host."""
_PORTS: Final = (80, 443)
"""The ports of a rule that names none."""
_HOST: Final = r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])"
_TUNNEL: Final = re.compile(rf"CONNECT {_HOST}:(\d{{1,5}}) HTTP/1\.[01]\r\n")
_PLAIN: Final = re.compile(rf"([A-Z]+) http://{_HOST}(?::(\d{{1,5}}))?(/\S*)? (HTTP/1\.[01])\r\n")
_OWN: Final = re.compile(r"(?im)^(?:proxy-[^:]*|connection|keep-alive|host):.*\r\n(?:[ \t].*\r\n)*")
"""The headers that a proxy does not pass on, or writes itself."""


class _Request(NamedTuple):
    host: str
    port: int
    head: str
    """What the host gets first; empty for a tunnel."""


class NetworkProxy:
    """The proxy of one command; *descriptor* is for the forwarder."""

    def __init__(self, rules: tuple[str, ...]) -> None:
        self._rules = rules
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003 - the socket gives it no name
        self._open: set[asyncio.Task[None]] = set()

    @property
    def descriptor(self) -> int:
        """The descriptor that the forwarder inherits; it stays open until `serve` has ended."""
        return self._theirs.fileno()

    async def serve(self) -> None:
        """Serve the command until this task is cancelled."""
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        loop.add_reader(self._ours, begun.set)
        try:
            await begun.wait()
            loop.remove_reader(self._ours)
            listener = socket.socket(fileno=socket.recv_fds(self._ours, 1, 1)[1][0])
            server = await asyncio.start_server(self._serve, sock=listener, limit=_LONGEST_HEAD)
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
        finally:
            loop.remove_reader(self._ours)
            self._ours.close()
            self._theirs.close()
            for each in self._open:
                each.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio runs this in a task"
        self._open.add(task)
        writers = [writer]
        try:
            with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                await self._relay(reader, writer, writers)
        finally:
            self._open.discard(task)
            for each in writers:
                each.close()

    async def _relay(
        self, reader: StreamReader, writer: StreamWriter, writers: list[StreamWriter]
    ) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                request = _request_in((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
                source, target = await self._connect(request)
        except ToolFailedError as error:
            writer.write(_answer(error))
            await writer.drain()
            return
        writers.append(target)
        if request.head:
            target.write(request.head.encode("latin-1"))
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, target), _copy(source, writer))

    async def _connect(self, request: _Request) -> tuple[StreamReader, StreamWriter]:
        """Return a connection to the host of *request*.

        Raises:
            ToolFailedError: the host is not allowed, or not reached; the message says what to do.
        """
        host, port = request.host, request.port
        named = host.strip("[]").lower().rstrip(".")
        if len(self._open) > _MOST:
            raise ToolFailedError("network", f"this command has {_MOST} connections; close some")
        if not any(_matches(rule, named, port) for rule in self._rules):
            known = ", ".join(self._rules) or "nothing"
            fix = (
                f'a person can add it in the agent\'s file: [isolation] network = ["{host}:{port}"]'
            )
            raise refusal(f"{host}:{port} is not allowed here; allowed is {known}; {fix}")
        literal = tuple(rule for rule in self._rules if _is_address(rule))
        fix = '[isolation] network = ["{where}:{port}"]'
        addresses = await checked_addresses(named, port, private=literal, fix=fix)
        why = ""
        for address in addresses:
            try:
                return await asyncio.open_connection(address, port)
            except OSError as error:
                why = str(error)
        raise ToolFailedError("network", f"{host}:{port} cannot be reached: {why}")


def _matches(rule: str, host: str, port: int) -> bool:
    found = HOST_RULE.fullmatch(rule)
    assert found is not None, "the form was checked"
    named = found[1].strip("[]").lower().rstrip(".")
    fits = named in ("*", host) or (named.startswith("*.") and host.endswith(named[1:]))
    return fits and (port in _PORTS if found[2] is None else port == int(found[2]))


def _is_address(rule: str) -> bool:
    found = HOST_RULE.fullmatch(rule)
    with suppress(ValueError):
        return found is not None and bool(ip_address(found[1].strip("[]")))
    return False


def _request_in(head: str) -> _Request:
    """Return the request that begins with *head*.

    Raises:
        ToolFailedError: it is none for a proxy.
    """
    if found := _TUNNEL.match(head):
        return _Request(found[1], int(found[2]), "")
    if found := _PLAIN.match(head):
        method, host, port, path, version = found.groups()
        authority = host if port is None else f"{host}:{port}"
        # The host ends the connection after its answer: another request may be for another host.
        lines = f"{method} {path or '/'} {version}\r\nHost: {authority}\r\nConnection: close\r\n"
        return _Request(host, int(port or 80), lines + _OWN.sub("", head[found.end() :]))
    raise refusal("this is a proxy for http:// addresses and CONNECT HOST:PORT")


def _answer(error: ToolFailedError) -> bytes:
    status = 403 if error.kind == "tool_error" else 502
    body = f"{error.message}\n".encode()
    head = f"HTTP/1.1 {status} {error.message}\r\nContent-Type: text/plain; charset=utf-8"
    ends = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return f"{head}\r\n{ends}".encode("latin-1", "replace") + body


async def _copy(source: StreamReader, target: StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        target.write(chunk)
        await target.drain()
    target.write_eof()


@contextmanager
def proxied(isolation: Isolation) -> Iterator[int | None]:
    """Serve a proxy in a thread for the block, if *isolation* names hosts.

    Yields the descriptor for the forwarder; None without a proxy.
    """
    if isinstance(isolation.network, bool):
        yield None
        return
    proxy = NetworkProxy(isolation.network)
    loop = asyncio.new_event_loop()
    task = loop.create_task(proxy.serve())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield proxy.descriptor
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
