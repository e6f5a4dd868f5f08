"""Anthropic's models behind the `Model` port."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from cueline.actors.model_port import ModelReply, ModelRequest
from cueline.address import URL, VENDORS, is_readable_on_the_way
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.providers.anthropic.request import (
    check_parameters,
    count_body,
    patience_of,
    request_body,
)

if TYPE_CHECKING:
    from cueline.providers.anthropic.connection import AnthropicClient

KEY_VARIABLE: Final = "ANTHROPIC_API_KEY"
URL_VARIABLE: Final = "ANTHROPIC_BASE_URL"
VENDOR: Final = VENDORS["anthropic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicAccount:
    """An address and a key."""

    base_url: str
    key: SecretStr

    @property
    def headers(self) -> dict[str, str]:
        """The headers beside the SDK's own."""
        # The SDK sends the key as a bearer token only; gateways look for x-api-key.
        return {} if self.base_url == VENDOR else {"x-api-key": self.key.get_secret_value()}


class AnthropicModel:
    """Calls Anthropic, or a server with its protocol; one instance serves many sessions."""

    def __init__(self, account: AnthropicAccount) -> None:
        self._account = account
        self._connection: AnthropicClient | None = None
        self._opening = asyncio.Lock()

    async def reply(self, request: ModelRequest) -> ModelReply:
        """See `Model.reply`."""
        body = request_body(request.agent, request.messages)
        connection = await self._connected()
        return await connection.send(body, patience_of(request.agent))

    async def count(self, request: ModelRequest) -> int | None:
        """See `TokenCounter.count`."""
        body = count_body(request_body(request.agent, request.messages))
        if body is None:
            return None
        connection = await self._connected()
        return await connection.count(body, patience_of(request.agent).of_a_count)

    async def close(self) -> None:
        """See `Model.close`; calls in flight end first, and a later one connects anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.retire()

    async def _connected(self) -> "AnthropicClient":
        async with self._opening:
            if self._connection is None:
                # A thread, because the first time takes two seconds, and other sessions use this
                # loop.
                self._connection = await asyncio.to_thread(connect, self._account)
            return self._connection


def connect(account: AnthropicAccount) -> "AnthropicClient":
    """Import the SDK and create its client."""
    from cueline.providers.anthropic.connection import AnthropicClient  # noqa: PLC0415 - see _connected

    return AnthropicClient(account)


def end_of(model: str) -> str | None:
    """Return the day on which the vendor retires *model*, as text; None if the SDK knows none."""
    from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415 - see _connected

    return DEPRECATED_MODELS.get(model)


def account_of(agent: AgentSpec, environ: Mapping[str, str]) -> AnthropicAccount:
    """Return address and key of *agent*.

    Raises:
        ConfigError: set the variable, or correct the setting, that it names.
    """
    check_parameters(agent)
    base_url = agent.base_url or environ.get(URL_VARIABLE) or VENDOR
    if not URL.fullmatch(base_url):
        shown = re.sub("//[^/]*@", "//…@", base_url)
        raise ConfigError("base_url", f"{shown!r} is not http(s)://host[:port][/path]")
    variable = agent.key_variable or KEY_VARIABLE
    if is_readable_on_the_way(base_url):
        fix = "use https, or an address of this machine"
        reason = f"{base_url!r} would get the value of {variable} over a network, readable; {fix}"
        raise ConfigError("base_url", reason)
    key = SecretStr(environ.get(variable, "").strip())
    if not key:
        fix = "put the key there, or name another variable as the agent's key_variable"
        raise ConfigError(variable, f"is not set; {fix}")
    # Sent as a header; characters that a header cannot hold would be quoted in an error.
    if re.fullmatch(r"[!-~]+", key.get_secret_value()) is None:
        raise ConfigError(variable, "holds characters that no key has; set it again")
    return AnthropicAccount(base_url=base_url.rstrip("/"), key=key)
