"""Calls the Gemini API."""

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.providers.account import Account
from cueline.providers.gemini.fault import gemini_fault
from cueline.providers.gemini.reply import StreamedReply
from cueline.providers.gemini.request import count_body, model_path, request_body
from cueline.providers.http import HttpClient, malformed
from cueline.providers.patience import Patience, patience_of
from cueline.providers.tool_protocol import ToolProtocol, as_asked

_LISTING = Patience(total=30, chunk=30)


class GeminiClient(HttpClient):
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        super().__init__(account, {"x-goog-api-key": account.key.get_secret_value()})
        self._protocol = ToolProtocol(self._ask)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        return await self._protocol.reply(request, deltas)

    async def _ask(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        agent = request.agent
        reply = StreamedReply(deltas, asked=agent.model, prefix=f"call_{request.turn}_")
        path = f"{model_path(agent.model)}:streamGenerateContent?alt=sse"
        body = request_body(agent, request.messages)
        return await self.stream(path, body, patience_of(agent), reply, gemini_fault)

    async def count(self, request: ModelRequest) -> int:
        """Return the API's token count of the prompt; it raises as `TokenCounter.count`."""
        agent, messages = as_asked(request.agent, request.messages)
        body = count_body(agent, request_body(agent, messages))
        path = f"{model_path(agent.model)}:countTokens"
        answer = await self.post(path, body, patience_of(agent).of_a_count)
        try:
            return int(answer["totalTokens"])
        except (KeyError, TypeError, ValueError) as error:
            raise malformed(error) from error

    async def models(self) -> list[str]:
        """Return the names of the models that answer messages."""
        listed = await self.get("/v1beta/models?pageSize=1000", _LISTING)
        return [
            model["name"].removeprefix("models/")
            for model in listed["models"]
            if "generateContent" in model.get("supportedGenerationMethods", ())
        ]
