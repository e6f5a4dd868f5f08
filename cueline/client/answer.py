"""Reads a person's answer to what a call asks for."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from cueline.client.inputs import typed
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.fact import json_or_text
from cueline.events.input_request import InputRequest, choices_of, request_text
from cueline.tools.arguments import check_value

_SUBJECT = "the answer"
YES = "yes"
"""The answer to a request that asks for no values."""


def answer_of(requests: Sequence[InputRequest], texts: Sequence[str]) -> str:
    """Return the answer to *requests* in the form in which it is recorded: JSON by key.

    Each of *texts* is NAME=VALUE, where NAME is a value that a request asks for, or is itself
    the value where only one is asked for. The number of a choice stands for the choice.

    Raises:
        ConfigError: a value is missing or does not fit; the message says what is asked for.
    """
    names = [name for each in requests for name in each.values]
    if len(names) == 1 and len(texts) == 1 and not texts[0].startswith(f"{names[0]}="):
        texts = [f"{names[0]}={texts[0]}"]
    given: dict[str, str] = {}
    for text in texts if names else ():
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            known = known_instead(name, names, "it asks for")
            raise ConfigError(_SUBJECT, f"{text!r} is not NAME=VALUE of what is asked for{known}")
        given[name] = value
    answers: dict[str, JsonValue] = {}
    for each in requests:
        schema = each.values
        chosen = {name: _choice(schema[name], given[name]) for name in schema if name in given}
        answers[each.key] = {**typed(chosen, each.parameters)} if each.parameters else YES
    return checked_answer(requests, json.dumps(answers, ensure_ascii=False))


def checked_answer(requests: Sequence[InputRequest], answer: str) -> str:
    """Return *answer*, which is JSON by key; or a text, if only one value is asked for.

    Raises:
        ConfigError: it does not fit; the message says what is asked for.
    """
    answers = json_or_text(answer)
    if not isinstance(answers, dict) or not answers.keys() <= {each.key for each in requests}:
        return answer_of(requests, [answer])
    for each in requests:
        value = answers.get(each.key)
        if each.parameters and (fault := check_value(each.parameters, value)):
            raise ConfigError(_SUBJECT, f"{fault}; it asks: {request_text(each)}")
    return answer


def _choice(schema: dict[str, JsonValue], text: str) -> str:
    choices = choices_of(schema)
    is_number = text.isdigit() and text not in choices and 0 < int(text) <= len(choices)
    return choices[int(text) - 1] if is_number else text
