"""Logs in to MCP servers by OAuth: a person in a browser, and from then on each runner.

The SDK has the flow. It keeps no time of expiry and no address for refreshing beyond its process,
so a login is stored here as a whole.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth import TokenStorage as SdkStorage
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ConfigDict

from cueline.events.agent_parts import McpOAuth, McpServer, with_values

LOCAL: Final = "127.0.0.1"
_NOBODY: Final = f"http://{LOCAL}/callback"
_DONE: Final = "You can close this page, and go back to the terminal.\n"


class Logins(Protocol):
    """Keeps the logins of this machine by the address of their server, encrypted."""

    def load(self, server: str) -> str | None:
        """Return a login; None if there is none."""

    def save(self, server: str, login: str) -> None:
        """Keep a login, and replace a former one."""

    def lock(self, server: str) -> AbstractContextManager[None]:
        """Wait until no other process refreshes the login, and keep it so in this block.

        Raises:
            OSError: there is no place for the lock.
        """


@dataclass(frozen=True)
class LoginPage:
    """The end of a login in a browser, which sends the person to an address of this process."""

    address: str
    show: Callable[[str], None]
    """Shows a person the address at which the login begins."""
    heard: asyncio.Queue[httpx2.QueryParams] = field(default_factory=asyncio.Queue)
    """What the browser brought."""

    async def begin(self, address: str) -> None:
        """Show the person the *address* at which the login begins."""
        self.show(address)

    async def wait(self) -> AuthorizationCodeResult:
        """Wait for the person.

        Raises:
            OAuthFlowError: the login was refused.
        """
        said = await self.heard.get()
        if "error" in said:
            raise OAuthFlowError(f"the login was refused: {said['error']}")
        return AuthorizationCodeResult(
            code=said.get("code", ""), state=said.get("state"), iss=said.get("iss")
        )


@asynccontextmanager
async def login_page(show: Callable[[str], None] | None) -> AsyncIterator[LoginPage | None]:
    """Listen on this machine for the end of a login; nothing if nobody can be shown an address."""
    if show is None:
        yield None
        return

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, _, target = (await reader.readline()).decode(errors="replace").partition(" ")
        asked = httpx2.URL(page.address).join(target.partition(" ")[0])
        if asked.path == "/callback":
            page.heard.put_nowait(asked.params)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(_DONE)}\r\nConnection: close\r\n\r\n"
        writer.write((head + _DONE).encode())
        writer.close()

    server = await asyncio.start_server(hear, LOCAL, 0)
    page = LoginPage(f"http://{LOCAL}:{server.sockets[0].getsockname()[1]}/callback", show)
    async with server:
        yield page


class _Login(BaseModel):
    """What is stored of a login, by its names in the context of the SDK."""

    model_config = ConfigDict(from_attributes=True)

    current_tokens: OAuthToken
    token_expiry_time: float | None
    client_info: OAuthClientInformationFull
    protected_resource_metadata: ProtectedResourceMetadata | None
    oauth_metadata: OAuthMetadata | None
    auth_server_url: str | None


class StoredOAuth(OAuthClientProvider):
    """Sends the tokens of a stored login, and refreshes them; with a page, a person logs in."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        values: Mapping[str, str],
        logins: Logins,
        page: LoginPage | None,
    ) -> None:
        """Create the provider of the server *name*, with the *values* of its variables."""
        client = server.oauth or McpOAuth()
        secret = with_values({"": client.client_secret}, values)[""]
        is_document = client.client_id.startswith("https://")
        redirect = AnyUrl(page.address if page else _NOBODY)
        super().__init__(
            server.url,
            OAuthClientMetadata(client_name="cueline", redirect_uris=[redirect]),
            cast("SdkStorage", self),
            page.begin if page else None,
            page.wait if page else None,
            client.client_id if is_document else None,
        )
        self._logins, self._page, self._loaded = logins, page, ""
        self._advice = f"run `cueline tools --agent FILE --login {name}` on this machine"
        if client.client_id and not is_document:
            self.context.client_info = OAuthClientInformationFull(
                client_id=client.client_id,
                client_secret=secret or None,
                redirect_uris=[redirect],
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
            )

    def hide(self, content: bytes) -> bytes:
        """Return *content* without the tokens, which a server may send back."""
        tokens = self.context.current_tokens
        for each in (tokens.access_token, tokens.refresh_token) if tokens else ():
            content = content.replace(each.encode(), b"[redacted]") if each else content
        return content

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See the SDK's `TokenStorage`."""
        del tokens  # they are in the context
        self._save()

    async def set_client_info(self, client: OAuthClientInformationFull) -> None:
        """Keep nothing: a client without tokens is of no use, and is registered again."""

    async def _initialize(self) -> None:
        if self._page is not None:
            self._initialized = True
            return
        # It stays uninitialized, so that each request sees what another process has refreshed.
        self._load()
        if self._is_old():
            # A thread: a cancelled call must not lose the tokens that replace the former ones.
            await asyncio.to_thread(self._refresh)
        if self.context.current_tokens is None:
            raise OAuthFlowError(f"its login is not accepted any more; {self._advice}")

    def _load(self) -> None:
        text = self._logins.load(self.context.server_url)
        if text is None:
            raise OAuthFlowError(f"nobody has logged in to it here; {self._advice}")
        self._loaded = text
        for name, value in _Login.model_validate_json(text):
            setattr(self.context, name, value)

    def _save(self) -> None:
        login = _Login.model_validate(self.context)
        self._logins.save(self.context.server_url, login.model_dump_json())

    def _is_old(self) -> bool:
        return not self.context.is_token_valid() and self.context.can_refresh_token()

    def _refresh(self) -> None:
        with self._logins.lock(self.context.server_url):
            self._load()
            if self._is_old():
                asyncio.run(self._ask_for_tokens())

    def _expire(self) -> None:
        """Let the next attempt refresh tokens that look valid."""
        with self._logins.lock(self.context.server_url):
            if self._logins.load(self.context.server_url) == self._loaded:
                self.context.token_expiry_time = time.time() - 1
                self._save()

    async def _ask_for_tokens(self) -> None:
        async with httpx2.AsyncClient() as http:
            await self._handle_refresh_response(await http.send(await self._refresh_token()))

    async def _perform_authorization(self) -> httpx2.Request:
        if self._page is not None:
            return await super()._perform_authorization()
        if self.context.can_refresh_token():
            await asyncio.to_thread(self._expire)
        raise OAuthFlowError(f"it does not accept its login, or wants more; {self._advice}")
