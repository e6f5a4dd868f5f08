"""A wish is a value, declared once: what else tells of it is derived from its class."""

import ast
import inspect
import textwrap
from dataclasses import fields
from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from typer.main import get_command

from cueline.cli import app
from cueline.client.start import StartOptions
from cueline.client.wishes import WISHES, Wish, make_wish
from cueline.errors import ConfigError
from cueline.events.inbox import SET_BY_CUELINE, InboxMessage, MessageSent, StartAsked, StopAsked

MESSAGES = {each.__name__: each for each in get_args(get_args(InboxMessage)[0])}
ONLY_ACTORS_SEND = {
    "SecretsWaived": {"names": ["KEY"], "by": "ann"},
    "BudgetFreed": {"budget": "budget-default/one"},
    "ChildAsked": {"child": "session-default/two"},
    "ChildEnded": {"child": "session-default/two", "status": "completed"},
    "ChildPaused": {"child": "session-default/two"},
    "RunAdmitted": {},
    "SlotOffered": {"pool": "main"},
    "RunnerGone": {"runner": "r1", "reason": "lost"},
}
NEEDED = {
    "MessageSent": {"text": "Hi"},
    "DecisionGiven": {"approval": "one.1.0.1", "verdict": "grant"},
}
USERS_MAY_NOT_SET = {
    ("MessageSent", "turn"): 2,
    ("MessageSent", "value"): 7,
    ("PauseAsked", "why"): "signal",
    ("ResumeAsked", "tools"): (),
    ("DecisionGiven", "channel"): "cli",
}
OF_A_START = {
    *("agent", "attached", "fork_of", "note", "root", "depth", "allowances", "call", "run"),
    *("schedule", "asked_by", "asked_at", "traceparent", "type"),
}
"""The fields of `StartAsked` that the client fills in: the agent beside the options, and
the schedule by `at` and `every`, and the trace of the environment."""


def test_each_message_is_a_wish_or_only_sent_by_actors():
    assert set(MESSAGES) - {"StartAsked"} == set(WISHES) | set(ONLY_ACTORS_SEND)
    assert set() == set(WISHES) & set(ONLY_ACTORS_SEND)


@pytest.mark.parametrize("kind", ONLY_ACTORS_SEND)
def test_what_only_actors_send_is_no_wish(kind):
    body = {"type": kind, **ONLY_ACTORS_SEND[kind]}

    assert MESSAGES[kind].model_validate(body)
    with pytest.raises(ValidationError, match="does not match any of the expected tags"):
        TypeAdapter(Wish).validate_python(body)


def test_each_field_that_users_may_not_set_is_known_here():
    marked = {
        (kind, name)
        for kind, model in WISHES.items()
        for name, field in model.model_fields.items()
        if SET_BY_CUELINE in field.metadata
    }

    assert set(USERS_MAY_NOT_SET) == marked


@pytest.mark.parametrize(("kind", "name"), USERS_MAY_NOT_SET)
def test_a_field_that_cueline_sets_is_refused_from_users(kind, name):
    given = {**NEEDED.get(kind, {}), name: USERS_MAY_NOT_SET[kind, name]}

    assert WISHES[kind].model_validate(given)
    with pytest.raises(ConfigError, match=f"{name}: only cueline sets it"):
        make_wish(WISHES[kind], **given)


@pytest.mark.parametrize("name", sorted(OF_A_START))
def test_a_user_cannot_say_it_of_a_new_session(name):
    assert name in StartAsked.model_fields
    assert name not in {each.name for each in fields(StartOptions)}


def test_all_else_of_a_start_is_an_option():
    options = {each.name for each in fields(StartOptions)}

    assert set(StartAsked.model_fields) - OF_A_START <= options
    not_recorded = {"id", "key", "without_secrets", "output", "texts", "at", "every"}
    assert not_recorded == options - set(StartAsked.model_fields)


def docs_of(kind):
    """Return the docstring of each field of *kind*."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    pairs = zip(body.body, body.body[1:], strict=False)
    return {
        before.target.id: inspect.cleandoc(after.value.value)
        for before, after in pairs
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr)
    }


def schema_of(kind):
    """Return the JSON schema of *kind* as users may send it: a body of HTTP, a tool of MCP."""
    schema = TypeAdapter(kind).json_schema()
    told, schema["description"] = docs_of(kind), kind.__doc__
    for name, field in getattr(kind, "model_fields", {}).items():
        if SET_BY_CUELINE in field.metadata:
            del schema["properties"][name]
    for name, each in schema["properties"].items():
        if name in told:
            each["description"] = told[name]
    return schema


@pytest.mark.parametrize("kind", WISHES.values(), ids=WISHES)
def test_the_body_of_a_request_and_the_schema_of_a_tool_come_from_the_class(kind):
    schema = schema_of(kind)

    assert schema["description"]
    assert not schema["additionalProperties"]
    assert kind.__name__ == schema["properties"].pop("type")["const"]
    assert all(each.get("description") for each in schema["properties"].values())


def test_the_options_of_a_start_have_a_schema_and_words():
    schema = schema_of(StartOptions)

    assert {each.name for each in fields(StartOptions)} == set(schema["properties"])
    assert all(each.get("description") for each in schema["properties"].values())


def test_the_table_of_a_reference_page_comes_from_the_class():
    rows = {
        f"| `{name}` | {each['description']} |"
        for name, each in schema_of(StopAsked)["properties"].items()
        if name != "type"
    }

    assert {"| `reason` | The person's text. |"} == rows


# A new field of a message is in two files: its class, and the options of the command.
def test_the_options_of_a_command_come_from_the_class():
    said = schema_of(MessageSent)["properties"]
    send = get_command(app).commands["send"].loaded
    options = {each.name for each in send.params}

    assert {"type", "lane", "text", "attachments", "name"} == set(said)
    assert {"text", "name", "attach", *said["lane"]["enum"]} <= options
    assert all(each["description"] for name, each in said.items() if name != "type")
