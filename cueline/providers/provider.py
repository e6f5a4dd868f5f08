"""The declaration of a provider: capabilities, address, default model, and functions."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cueline.actors.model_port import Model
from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint

Pause = Callable[[float], Awaitable[None]]
"""Waits for a number of seconds, by the current clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a provider's models; a single model may lack some."""

    tools: bool = True
    parallel_tools: bool = True
    """Whether one reply can contain several tool calls."""
    streaming: bool = True
    """Whether text arrives in pieces."""
    images: bool = False
    files: bool = False
    """Whether requests can contain documents, such as PDF."""
    thinking: bool = False
    """Whether thoughts are shown, and sent back."""
    prompt_cache: bool = False
    """Whether a repeated start of a prompt costs less; the usage shows the cached tokens."""
    json_schema: bool = False
    """Whether the reply can be bound to a JSON schema."""
    token_counter: bool = False
    """Whether the tokens of a prompt can be counted before the call."""
    needs_key: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A vendor of models, or another source of replies.

    A package adds one by an entry point of the group `cueline.providers` that names an
    instance. Importing it has to be quick: import an SDK in `make`, or later.
    """

    name: str
    """The name of the provider, as in an agent's `provider`."""
    capabilities: Capabilities
    make: Callable[[Account, Pause], Model]
    """Create the model of an account; agents with one account share this model."""
    request: Callable[[AgentSpec, Iterable[bytes], Account], dict[str, Any]] | None = None
    """Return the JSON of the next request, which `make`'s model sends; None without requests.

    The messages are those of a `ModelRequest`.
    """
    endpoint: Endpoint | None = None
    """The address and the key's variable; None if the provider is not called over a network."""
    default_model: str = ""
    """The model of agents that name no model; empty if each agent has to name a model."""
    looked_up: str = ""
    """The day on which `default_model` was looked up, as 2026-11-24."""
    first_steps: str = ""
    """How to make the provider usable without a key, as a part of a sentence."""
    model_variable: str = ""
    """The environment variable with another default model."""
    check: Callable[[AgentSpec], None] = lambda _: None
    """Raise `ConfigError` if the agent's parameters cannot be used."""
    models: Callable[[Account], Awaitable[list[str]]] | None = None
    """Return the names of the server's models; None if the server has no such list."""
    ends_on: Callable[[str], str | None] = lambda _: None
    """Return the day on which the vendor retires a model."""
    prices: str = ""
    """The provider's name in the list of prices; empty if the list uses `name`."""
    is_free: bool = False
    """Whether its models cost nothing."""
    record_file: Callable[[Mapping[str, Any], Path], dict[str, Any]] | None = None
    """Return an agent's parameters with the content of the file that its `model` names.

    None if a `model` is no file. The function raises `ConfigError` for an unusable file.
    """
