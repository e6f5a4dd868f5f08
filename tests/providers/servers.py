"""Servers with vendors' protocols that nobody here wrote, behind one port."""

from contextlib import contextmanager

from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall

from tests.providers.aimock_server import AimockServer

BOTH = ("llmock", "aimock")


@contextmanager
def server_named(request, provider, path=""):
    """Run the server that *request* has as its parameter, one of `BOTH`."""
    if request.param == "llmock":
        llmock = request.getfixturevalue("llmock")
        yield LlmockServer(llmock, llmock.base_url(provider))
        return
    with AimockServer(request.getfixturevalue("aimock"), path) as server:
        yield server


class LlmockServer:
    """See `cueline.testing.model_server.ModelServer`."""

    def __init__(self, llmock: LLMock, base_url: str) -> None:
        self._llmock = llmock
        self.base_url = base_url

    @property
    def requests(self):
        return [record.body for record in self._llmock.requests]

    def say(self, text):
        self._llmock.reply(text)

    def call(self, *calls):
        asked = tuple(ToolCall(call.name, call.arguments) for call in calls)
        self._llmock.add(Reply(tool_calls=asked))

    def spoil_call(self):
        self._llmock.break_tool_call("malformed_arguments")

    def fail(self, status, retry_after=None):
        self._llmock.fail(status, retry_after=retry_after)

    def break_stream(self, fault):
        match fault:
            case "cut":
                self._llmock.truncate(after_chunks=3)
            case "disconnect":
                self._llmock.disconnect(after_chunks=2)
            case "garble":
                self._llmock.corrupt(after_chunks=4)
            case "stall":
                self._llmock.stall(after_chunks=2, seconds=30)
