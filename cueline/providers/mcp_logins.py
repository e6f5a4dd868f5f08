"""The logins to MCP servers, kept encrypted beside the keys of providers."""

import fcntl
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from pydantic import SecretStr

from cueline.providers.key_store import LOGIN, KeyStore


class McpLogins:
    """The logins to MCP servers of this machine; see `Logins`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._keys = KeyStore(environ)

    def load(self, server: str) -> str | None:
        """See `Logins.load`."""
        login = self._keys.key(f"{LOGIN}{server}", "")
        return None if login is None else login.get_secret_value()

    def save(self, server: str, login: str) -> None:
        """See `Logins.save`."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._keys.set(f"{LOGIN}{server}", "", SecretStr(login), now)

    @contextmanager
    def lock(self, server: str) -> Iterator[None]:
        """See `Logins.lock`."""
        digest = hashlib.sha256(server.encode()).hexdigest()[:16]
        path = self._keys.path.with_name(f"mcp-{digest}.lock")
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
