"""The parts of requests and replies that are the same in both dialects."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from cueline.actors.model_port import Delta
from cueline.errors import ProviderRefusedError
from cueline.events.agent import AgentSpec
from cueline.events.message import FileBlock, ImageBlock, Usage
from cueline.providers.event_stream import count_of
from cueline.providers.fault import BY_TYPE, Fault, fault_of
from cueline.providers.openai.servers import CACHED, OWN, WRITTEN
from cueline.providers.patience import OWN as OURS

Json = dict[str, Any]

OK: Final = 200
ERRORS: Final = range(400, 600)


def given(agent: AgentSpec) -> Json:
    """Return the parameters of *agent* that are sent."""
    return {name: value for name, value in agent.parameters.items() if name not in OURS | OWN}


def data_url(attachment: ImageBlock | FileBlock) -> str:
    """Return the URL that holds the bytes of *attachment*."""
    return f"data:{attachment.media_type};base64,{attachment.data}"


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Return the usage from a server, whose input includes cached tokens."""
    sent = count_of(told.get("input_tokens") or told.get("prompt_tokens"))
    read, written = number_at(told, CACHED), number_at(told, WRITTEN)
    return Usage(
        input=max(0, sent - read - written),
        output=count_of(told.get("output_tokens") or told.get("completion_tokens")),
        cache_read=read,
        cache_write=written,
    )


def number_at(told: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> int:
    """Return the first number at one of *paths*; 0 if no path has a number."""
    for path in paths:
        value: Any = told
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return count_of(value)
    return 0


def texts_of(content: Any, kind: Literal["text", "thinking"] = "text") -> Iterator[Delta]:
    """Yield the texts and thoughts of a message's content, which may be a list of pieces."""
    if isinstance(content, str):
        yield Delta(kind, content)
    for part in content if isinstance(content, list) else ():
        yield from texts_of(part.get("text"), kind)
        yield from texts_of(part.get("thinking"), "thinking")


def fault_in_stream(error: Any) -> Fault:
    """Return the error that a server sends in the middle of a stream."""
    told = error if isinstance(error, Mapping) else {"message": str(error)}
    code = told.get("code")
    # Gateways send the HTTP status of the server behind them as the code.
    status = code if isinstance(code, int) and code in ERRORS else OK
    kinds = [kind for kind in (told.get("code"), told.get("type")) if isinstance(kind, str)]
    kind = next((kind for kind in kinds if kind in BY_TYPE), kinds[0] if kinds else None)
    return fault_of(status, kind, str(told.get("message") or "no message"), {})


def refusal(text: str) -> ProviderRefusedError:
    """Return the error for a model that declines to answer."""
    return ProviderRefusedError("refused", f"the model declined to answer ({text})")


def filtered() -> ProviderRefusedError:
    """Return the error for an answer that the vendor's filter stopped."""
    return ProviderRefusedError("content_filtered", "the vendor's filter stopped the answer")
