"""Models on the user's own machines, behind an Ollama server."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint
from cueline.providers.lazy_model import LazyModel, names_of_models
from cueline.providers.ollama.request import Json, request_body
from cueline.providers.patience import check_parameters
from cueline.providers.provider import Capabilities, Provider
from cueline.providers.tool_protocol import as_asked

CLIENT: Final = "cueline.providers.ollama.connection:OllamaClient"
PORT: Final = 11434
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}  # noqa: S104 - it is replaced
_HOST: Final = re.compile(
    r"(?:(?P<scheme>\w+)://)?(?P<host>\[[^\]]*\]|[^:/]*)(?P<port>:\d+)?(?P<path>/.*)?"
)
ELSEWHERE: Final = {"num_predict": "use limits.max_output_tokens"}


def host_url(value: str) -> str:
    """Return the address in `OLLAMA_HOST`, which may lack scheme, host or port.

    A server also reads the variable. An address at which it listens for all networks is replaced
    by the address of this machine.
    """
    told = _HOST.fullmatch(value.strip())
    if told is None:
        return value
    scheme, host, port, path = told["scheme"], told["host"], told["port"], told["path"] or ""
    if port is None and scheme is None:
        port = f":{PORT}"
    return f"{scheme or 'http'}://{_EVERYWHERE.get(host, host)}{port or ''}{path}"


def request(agent: AgentSpec, messages: Iterable[bytes], _account: Account) -> Json:
    """Return the JSON of the next request to a model that can do everything."""
    return request_body(*as_asked(agent, messages))


PROVIDER: Final = Provider(
    name="ollama",
    capabilities=Capabilities(images=True, thinking=True, json_schema=True, needs_key=False),
    make=LazyModel.of(CLIENT),
    request=request,
    endpoint=Endpoint(
        url=f"http://localhost:{PORT}",
        url_variable="OLLAMA_HOST",
        key_variable="OLLAMA_API_KEY",
        needs_key=False,
        read_url=host_url,
    ),
    default_model="qwen3",
    looked_up="2026-11-24",
    first_steps="install Ollama, and run `ollama pull qwen3`",
    model_variable="OLLAMA_MODEL",
    check=partial(check_parameters, prompts=True, elsewhere=ELSEWHERE),
    models=partial(names_of_models, CLIENT),
    is_free=True,
)
