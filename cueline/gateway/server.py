"""Serves a log by HTTP with uvicorn, until a signal ends it."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn

from cueline.client.client import Client
from cueline.client.server_address import announced
from cueline.errors import ConfigError
from cueline.gateway.api import app_of
from cueline.gateway.mcp import LOOPBACK

_PROXIES = "127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1/128,fc00::/7"
"""Where a proxy in front is: an address that is not of these networks is the caller's."""
DRAIN_SECONDS = 5
"""How long open requests may take after a signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens, and how it is protected there."""

    host: str = "127.0.0.1"
    port: int = 8642
    """The port; 0: any free one."""
    certificate: Path | None = None
    """The file with the certificates, in PEM."""
    key: Path | None = None
    """The file with the private key, in PEM."""
    behind_proxy: bool = False
    """Whether a proxy in front adds TLS."""

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """The names that requests may have in `Host`; None: every name."""
        return LOOPBACK if _is_loopback(self.host) and not self.behind_proxy else None

    def check(self) -> None:
        """Refuse an address at which tokens would be sent in clear text.

        Raises:
            ConfigError: use the loopback address, give a certificate, or put a proxy in front.
        """
        if (self.certificate is None) != (self.key is None):
            missing = "key" if self.key is None else "certificate"
            raise ConfigError(missing, "TLS needs a certificate and its key; give both")
        for name, path in {"certificate": self.certificate, "key": self.key}.items():
            if path is not None and not path.is_file():
                raise ConfigError(name, f"there is no file {path}")
        if not (_is_loopback(self.host) or self.certificate or self.behind_proxy):
            why = (
                f"{self.host} is reached from other machines, and tokens would be sent unencrypted"
            )
            fix = "give --certificate and --key, or --behind-proxy if a proxy adds TLS"
            raise ConfigError("host", f"{why}: {fix}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(
    client: Client,
    address: Address,
    *,
    token: str | None,
    ready: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Serve the API of *client* until SIGINT or SIGTERM.

    Args:
        client: carries out the requests; the caller closes it.
        address: where to listen.
        token: see `app_of`.
        ready: called with the URL once requests are accepted.
        say: called with each warning and error of the server; it can contain secrets.

    Raises:
        ConfigError: the address cannot be used.
    """
    address.check()
    config = uvicorn.Config(
        app_of(client, token=token, hosts=address.hosts),
        host=address.host,
        port=address.port,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        proxy_headers=address.behind_proxy,
        forwarded_allow_ips=_PROXIES,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        log_config=None,
        server_header=False,
        lifespan="off",
    )
    told = _LogHandler(say)
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(told)
    logger.propagate = False
    url = asyncio.get_running_loop().create_future()
    relay = client.log.relay
    server = _Server(config, url.set_result, drain=None if relay is None else relay.drain)
    serving = asyncio.create_task(server.serve())
    try:
        await asyncio.wait((url, serving), return_when=asyncio.FIRST_COMPLETED)
        if url.done():
            async with announced(client.log, url.result()):
                ready(url.result())
                await asyncio.shield(serving)
        await serving
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    finally:
        logger.removeHandler(told)


def end_with_stdin() -> None:
    """End this process, as by SIGTERM, when its standard input ends: with who started it."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(0, look)


class _LogHandler(logging.Handler):
    """Passes warnings and errors on."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(self.format(record))


class _Server(uvicorn.Server):
    """A server that reports its URL, raises if it cannot listen, and ends at a signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[str], None],
        drain: Callable[[], None] | None,
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._drain = drain

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at SIGINT and SIGTERM; open requests may finish, unless a second signal comes."""
        loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        for each in signals:
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)

    async def shutdown(self, sockets: Any = None) -> None:
        """End the long polls, and then all connections."""
        if self._drain is not None:
            self._drain()
        await super().shutdown(sockets)

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and report the URL.

        Raises:
            ConfigError: the address is in use, or not one of this machine.
        """
        try:
            await super().startup(sockets)
        except SystemExit as error:  # uvicorn has printed the reason
            where = f"{self.config.host}:{self.config.port}"
            raise ConfigError("port", f"{where} cannot be used; choose another port") from error
        scheme = "https" if self.config.is_ssl else "http"
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self._ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
