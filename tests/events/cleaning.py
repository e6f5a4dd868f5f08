"""A secret, and what knows it: what the tests of cleaning share."""

import textwrap

from pydantic import SecretStr

from cueline.events.codec import Codec
from cueline.events.message import ToolCall
from cueline.events.sanitize import (
    Redactor,
    sanitize,
)
from cueline.events.session import ModelReplied

CANARY = 'sk-k3y/"\\+ é&<x>'


def redactor_of(secrets):
    return Redactor(map(SecretStr, secrets))


REDACTOR = redactor_of([CANARY])
CODEC = Codec(REDACTOR)


def encode(fact, codec=CODEC):
    return codec.encode(fact, actor="agent", occurred_us=1)


def sanitised(value):
    """Clean *value*, where no secret is known."""
    return sanitize(value, Redactor())


def replied(arguments):
    call = ToolCall(id="c1", name="write_file", arguments=arguments)
    return ModelReplied(effect="1.m", attempt=1, calls=(call,), stop_reason="tool_use")


def shifted(encoder, before):
    return encoder(before + CANARY.encode() + b"and so on").decode()


def in_lines(text):
    return "\n".join(textwrap.wrap(text, 8))
