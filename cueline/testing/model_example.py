"""The base class, decorator and requests of the contract of models."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar

import pytest
from pydantic import JsonValue

from cueline.actors.model_port import Delta, Model, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.message import Message, TextBlock, ToolCall, UserMessage, canonical_json
from cueline.providers.account import NOWHERE, Account, account_of
from cueline.providers.provider import Provider
from cueline.testing.model_server import ModelServer, Recorded, RecordedServer

KEY: Final = "sk-test-0123456789"
WEATHER: Final = ToolSpec(
    name="get_weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    target="weather:get_weather",
    digest="d",
)
HELLO: Final = UserMessage(text="What is the weather in Paris?")
TEXT: Final = "It rains, as it often does."

F = TypeVar("F", bound=Callable[..., Any])


def case(title: str, *, needs: str = "", recorded: str = "") -> Callable[[F], F]:
    """Name the row of a test in the table of `docs/reference/providers.md`.

    Args:
        title: the row.
        needs: the capability without which the test is skipped.
        recorded: the recorded answer without which it is skipped.
    """

    def mark(test: F) -> F:
        vars(test)["case"] = Case(title, needs, recorded)
        return test

    return mark


@dataclass(frozen=True)
class Case:
    """The row and the needs of a test of the contract."""

    title: str
    needs: str = ""
    recorded: str = ""


@dataclass
class Asker:
    """Calls one model, and keeps the received pieces."""

    model: Model
    agent: AgentSpec
    deltas: list[Delta] = field(default_factory=list)

    async def __call__(self, *messages: Message, **fields: Any) -> ModelReply:
        """Return the reply to *messages*, for the agent with other *fields*."""
        return await self.model.reply(
            ModelRequest(
                session="session-default/1",
                effect="1.m",
                turn=1,
                attempt=1,
                agent=self.agent.model_copy(update=fields),
                messages=[canonical_json(message) for message in messages or (HELLO,)],
            ),
            self.deltas.append,
        )

    def told(self, kind: str) -> str:
        """Return the pieces of one kind, joined."""
        return "".join(delta.text for delta in self.deltas if delta.kind == kind)


async def never(_seconds: float) -> None:
    """Replace a clock: no provider waits on its own."""
    raise AssertionError


class ModelCases:
    """The properties of a provider that all cases need."""

    provider: ClassVar[Provider]
    title: ClassVar[str] = ""
    """The column in the table of providers; empty: the provider's name."""
    lacks: ClassVar[frozenset[str]] = frozenset()
    """Capabilities of the provider that this server or dialect does not have."""
    model: ClassVar[str] = "model-1"
    parameters: ClassVar[dict[str, JsonValue]] = {}
    recorded: ClassVar[dict[str, Recorded]] = {}
    """Answers in the vendor's documented form, by the names in `model_contract.RECORDED`."""
    server_lacks: ClassVar[frozenset[str]] = frozenset()
    """The rows that the third-party server cannot play."""
    signature: ClassVar[str] = ""
    """Opaque data in the recorded answer `thinking` that has to go back."""

    @pytest.fixture(autouse=True)
    def is_capable(self, request: pytest.FixtureRequest) -> None:
        """Skip a test of a capability that the provider lacks."""
        if why := self.missing(vars(request.function).get("case", Case(""))):
            pytest.skip(f"{self.provider.name}: {why}")

    @classmethod
    def missing(cls, asked: Case) -> str:
        """Return the reason why the provider skips a case; empty: it runs the case."""
        able = getattr(cls.provider.capabilities, asked.needs, True)
        if asked.needs in cls.lacks or not able:
            return f"no capability {asked.needs}"
        if asked.recorded and asked.recorded not in cls.recorded:
            return f"no recorded answer {asked.recorded!r}"
        if not asked.recorded and asked.title in cls.server_lacks:
            return f"the server cannot play {asked.title!r}"
        return ""

    @pytest.fixture
    def server(self) -> ModelServer:
        """Return a third party's server with the vendor's protocol."""
        pytest.skip(f"{self.provider.name}: nobody else's server has its protocol")

    @pytest.fixture
    async def ask(self, server: ModelServer) -> AsyncIterator[Asker]:
        """Yield a caller of the server."""
        asker = self.asker(server.base_url)
        yield asker
        await asker.model.close()

    @pytest.fixture
    async def recorder(self) -> AsyncIterator[RecordedServer]:
        """Yield a server of recorded answers."""
        async with RecordedServer() as server:
            yield server

    @pytest.fixture
    async def ask_recorder(self, recorder: RecordedServer) -> AsyncIterator[Asker]:
        """Yield a caller of the server of recorded answers."""
        asker = self.asker(recorder.base_url)
        yield asker
        await asker.model.close()

    def agent(self, base_url: str | None = None) -> AgentSpec:
        """Return an agent of the provider."""
        agent = AgentSpec(
            name="tester",
            provider=self.provider.name,
            model=self.model,
            parameters=self.parameters,
            base_url=base_url,
        )
        self.provider.check(agent)
        return agent

    def account(self, base_url: str | None = None) -> Account:
        """Return the account of that agent, with a key."""
        endpoint = self.provider.endpoint
        if endpoint is None:
            return NOWHERE
        return account_of(endpoint, self.agent(base_url), {endpoint.key_variable: KEY})

    def asker(self, base_url: str) -> Asker:
        """Return a caller of the provider's model at *base_url*."""
        return Asker(self.provider.make(self.account(base_url), never), self.agent(base_url))

    @asynccontextmanager
    async def asking(
        self, ask: Asker, *messages: Message
    ) -> AsyncIterator[asyncio.Task[ModelReply]]:
        """Call the model in a task, which ends with the block."""
        task = asyncio.create_task(ask(*messages))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})

    def body(self, *messages: Message) -> dict[str, Any]:
        """Return the JSON of a request to the vendor."""
        assert self.provider.request is not None
        encoded = [canonical_json(message) for message in messages]
        return self.provider.request(self.agent(), encoded, self.account())

    def stable(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return *body* without marks that are no part of the prompt."""
        return body

    async def refusal(self, recorder: RecordedServer, ask: Asker, name: str) -> str:
        """Return the kind of the error for a recorded answer."""
        recorder.answers.append(self.recorded[name])
        with pytest.raises(ProviderRefusedError) as caught:
            await ask(HELLO)
        return caught.value.kind


def text_of(reply: ModelReply) -> str:
    """Return the text of a reply."""
    return "".join(block.text for block in reply.content if isinstance(block, TextBlock))


PARIS: Final = ToolCall(id="", name="get_weather", arguments={"city": "Paris"})
ROME: Final = ToolCall(id="", name="get_weather", arguments={"city": "Rome"})
