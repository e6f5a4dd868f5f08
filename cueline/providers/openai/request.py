"""Builds requests in the dialect of the server."""

from collections.abc import Iterable

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account
from cueline.providers.openai.chat_request import chat_body
from cueline.providers.openai.content import Json
from cueline.providers.openai.responses_request import responses_body
from cueline.providers.openai.servers import dialect_of, server_of


def request_body(agent: AgentSpec, messages: Iterable[bytes], account: Account) -> Json:
    """Return the JSON of a request for the next reply, as a stream."""
    if dialect_of(agent, account) == "responses":
        return responses_body(agent, messages)
    return chat_body(agent, messages, server_of(agent, account))
