"""The requests of recorded and generated sessions, as each provider would send them.

A request is two texts: what stands before the messages for the model, and the messages. The
marks that say what to cache move from request to request, and are no content.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import msgpack
from pydantic import SecretStr

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SessionState, evolve, session_of
from cueline.deciders.session.state_codec import packed, unpacked
from cueline.events.agent import AgentSpec, answering
from cueline.events.session import ModelRequested, PromptPrefixChanged, SessionEvent
from cueline.events.stream import is_compaction
from cueline.providers.account import Account
from cueline.providers.provider import Provider
from cueline.providers.registry import providers
from tests.histories.test_histories import RECORDED, decode, lines_of

BUILDERS = [provider for provider in providers() if provider.request is not None]
"""The providers that call a vendor."""
LISTS = {"messages", "input", "contents"}
"""The names that vendors have for the messages of a request."""
MARK = "cache_control"
STREAM = "session-default/1"


class Sent(NamedTuple):
    """One request."""

    body: dict[str, Any]
    head: bytes
    messages: bytes
    changed: bool
    """`PromptPrefixChanged` was recorded since the request before."""

    def begins(self, after: "Sent") -> bool:
        """Whether everything of this request is the beginning of the one *after*."""
        # The last message may be longer in the next one.
        return self.head == after.head and after.messages.startswith(self.messages.rstrip(b"]}"))


_MADE: dict[tuple[str, str, bytes], Sent] = {}
_MOST = 1000


def sent(
    provider: Provider, agent: AgentSpec, messages: Sequence[bytes], *, changed: bool = False
) -> Sent:
    """Return the request that *provider* would send."""
    key = (provider.name, agent.model_dump_json(), b",".join(messages))
    if key not in _MADE:
        if len(_MADE) > _MOST:
            _MADE.clear()
        _MADE[key] = made(provider, agent, messages)
    return _MADE[key]._replace(changed=changed)


def made(provider: Provider, agent: AgentSpec, messages: Sequence[bytes]) -> Sent:
    """Return the request that *provider* would send, made anew."""
    assert provider.request is not None
    assert provider.endpoint is not None
    account = Account(base_url=provider.endpoint.url, key=SecretStr("k"))
    body = provider.request(agent, messages, account)
    (name,) = body.keys() & LISTS
    bare = unmarked(body)
    told = bare.pop(name)
    return Sent(body, text(bare), text(told), changed=False)


def text(value: object) -> bytes:
    """Return *value* as the clients send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def unmarked(value: Any) -> Any:
    """Return *value* without marks for the cache."""
    match value:
        case dict():
            return {key: unmarked(item) for key, item in value.items() if key != MARK}
        case list():
            return [unmarked(item) for item in value]
    return value


def requests(
    provider: Provider,
    facts: Iterable[SessionEvent],
    state: SessionState,
    prompt: Prompt,
    *,
    changed: bool = False,
) -> Iterator[Sent]:
    """Yield the requests of a session that goes on with *facts*."""
    for fact in facts:
        state = evolve(state, fact)
        prompt.add(fact)
        if isinstance(fact, PromptPrefixChanged):
            changed = True
        elif is_turn(fact):
            assert isinstance(fact, ModelRequested)
            agent = answering(state.agent, fact.fallback)
            yield sent(provider, agent, prompt.messages, changed=changed)
            changed = False


def is_turn(fact: SessionEvent) -> bool:
    """Whether a fact requests a turn; a request for a summary is a question of its own."""
    return isinstance(fact, ModelRequested) and not is_compaction(fact.effect)


def through_snapshot(state: SessionState, prompt: Prompt) -> tuple[SessionState, Prompt]:
    """Return both as another host reads them from a snapshot."""
    again, rest = unpacked(packed(state, prompt))
    rest.transcript += msgpack.decode(msgpack.encode(prompt.transcript), type=list[bytes])
    return again, rest


def recorded() -> dict[str, list[SessionEvent]]:
    """Return the recorded sessions; a fork begins with what it shares with its parent."""
    paths = sorted(RECORDED.glob("session-*.jsonl"))
    facts = {
        path.stem: [decode(line, n) for n, line in enumerate(lines_of(path), start=1)]
        for path in paths
    }
    for name, events in facts.items():
        if (first := events[0]).type == "SessionForked":
            parent = name.rpartition("-")[0] + "-" + first.parent.rpartition("/")[2]
            facts[name] = [*facts[parent][: first.version], *events]
    return facts


def digests() -> dict[str, str]:
    """Return a digest of all requests of each recorded session, by provider."""
    found = {}
    for provider in BUILDERS:
        for name, facts in recorded().items():
            whole = hashlib.sha256()
            for each in requests(provider, facts, session_of(STREAM), Prompt()):
                whole.update(text(each.body))
            found[f"{provider.name} {name}"] = whole.hexdigest()
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)
