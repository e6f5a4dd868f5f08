"""The differences between servers with OpenAI's protocol, as data."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from cueline.actors.model_port import ModelReply
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.providers.account import Account

PROVIDER: Final = "openai"
Dialect = Literal["responses", "chat"]
DIALECTS: Final[tuple[Dialect, ...]] = ("responses", "chat")
DIALECT: Final = "dialect"
SERVER: Final = "server"
OWN: Final = frozenset({DIALECT, SERVER})
"""The parameters of this provider that are cueline's own, and not sent."""


class Server(Struct, frozen=True, kw_only=True):
    """The differences of one server of Chat Completions."""

    limit: str = "max_tokens"
    """The field for the highest number of tokens of a reply."""
    usage_option: bool = True
    """Whether the server takes `stream_options`; without it, most servers send no usage."""
    files: bool = False
    """Whether the server takes documents."""
    is_mistral: bool = False
    """Whether ids of calls have 9 letters and digits, and no user message follows a result."""
    thoughts: str = ""
    """The field in which thoughts are sent back; empty if thoughts are not sent back."""
    leaves_unparsed: bool = False
    """Whether the server takes call arguments that are no JSON; other servers refuse them."""
    kept: str = ""
    """The field with opaque thoughts, which are sent back unchanged."""


USUAL: Final = Server()
OPENAI: Final = Server(limit="max_completion_tokens", files=True, leaves_unparsed=True)
SERVERS: Final = {
    "api.openai.com": OPENAI,
    "openai.azure.com": OPENAI,
    "openrouter.ai": Server(files=True, kept="reasoning_details"),
    # DeepSeek refuses a later request without the thoughts of a reply that called tools.
    "api.deepseek.com": Server(thoughts="reasoning_content"),
    "api.moonshot.ai": Server(thoughts="reasoning_content"),
    "api.z.ai": Server(thoughts="reasoning_content"),
    # Mistral refuses unknown fields, and always sends the usage.
    "api.mistral.ai": Server(usage_option=False, is_mistral=True),
}
"""The entries by host or parent domain. The parameter `server` names an entry for another host."""

THOUGHTS: Final = ("reasoning_content", "reasoning")
"""The fields in which servers send thoughts."""
CACHED: Final = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
)
"""The places in the usage with the tokens that were read from the cache."""
WRITTEN: Final = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
)
"""The places in the usage with the tokens that were written to the cache."""

NO_IMAGES: Final = re.compile(
    "support image input|image input is not supported|is not a multimodal model"
    "|unknown variant .?image_url",
    re.IGNORECASE,
)
"""The errors of OpenRouter, llama.cpp, vLLM and DeepSeek for a model that takes no images."""

LLAMA_CPP: Final = "llama.cpp"
"""The name of a llama.cpp in the header `server`."""
BYTES_PER_TOKEN: Final = 8
"""More bytes than a token of prose has on average."""

UNTHINKING: Final = ("gpt-3.5", "gpt-4", "chatgpt-", "gpt-5-chat", "ft:gpt-3.5", "ft:gpt-4")
"""The prefixes of models without thoughts, which refuse to encrypt thoughts."""

ENDS: Final = {
    "gpt-5": "2026-12-11",
    "gpt-5-mini": "2026-12-11",
    "gpt-5-nano": "2026-12-11",
    "gpt-5-pro": "2026-12-11",
    "o3": "2026-12-11",
    "o3-pro": "2026-12-11",
    "gpt-4o": "2027-01-14",
    "gpt-4o-mini": "2027-01-14",
    "gpt-4.1": "2027-01-14",
    "gpt-4.1-mini": "2027-01-14",
    "gpt-5.1": "2027-04-01",
}
"""The last days of the vendor's models; developers.openai.com/api/docs/deprecations, 2026-11-24."""
DEFAULT_MODEL: Final = "gpt-6.1-terra"
"""The default model, as of 2026-11-24."""


def server_of(agent: AgentSpec, account: Account) -> Server:
    """Return the differences of the server that *agent* uses."""
    host = re.sub(r"^https?://|[:/?].*$", "", account.base_url)
    name = str(agent.parameters.get(SERVER, host))
    known = (each for each in SERVERS if name == each or name.endswith(f".{each}"))
    return next((SERVERS[each] for each in known), USUAL)


def dialect_of(agent: AgentSpec, account: Account) -> Dialect:
    """Return the dialect that *agent* sets; by default `responses` for the vendor, else `chat`."""
    usual: Dialect = "responses" if account.is_vendor else "chat"
    return "responses" if agent.parameters.get(DIALECT, usual) == "responses" else "chat"


def takes_tools(props: object) -> bool:
    """Whether a llama.cpp with these properties gives tools to its model; true if unknown."""
    able = props.get("chat_template_caps") if isinstance(props, Mapping) else None
    return not isinstance(able, Mapping) or able.get("supports_tools") is not False


def hid_tools(agent: AgentSpec, reply: ModelReply) -> bool:
    """Whether the prompt of *reply* had fewer tokens than the descriptions of the tools alone."""
    described = sum(len((tool.name + tool.description).encode()) for tool in agent.tools)
    return not reply.calls and 0 < reply.usage.sent * BYTES_PER_TOKEN < described


def check_server(agent: AgentSpec) -> None:
    """Check the parameters of *agent* that are this provider's own.

    Raises:
        ConfigError: correct the parameter that it names.
    """
    for name, known in ((DIALECT, DIALECTS), (SERVER, tuple(SERVERS))):
        value = agent.parameters.get(name, known[0])
        if value not in known:
            raise ConfigError(f"parameters.{name}", f"is {value!r}, none of {', '.join(known)}")


def end_of(model: str) -> str | None:
    """Return the day on which the vendor ends *model*, or a dated version of it."""
    return ENDS.get(re.sub(r"-20\d\d-\d\d-\d\d$", "", model))
