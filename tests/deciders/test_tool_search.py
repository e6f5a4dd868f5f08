"""Tools that a model finds by words and calls by name, instead of being shown each of them."""

import json

import pytest

from cueline.deciders.prompt import assistant_message
from cueline.deciders.session import due
from cueline.deciders.session.due import AskApproval, RunTool
from cueline.deciders.tool_search import MOST_FOUND, as_asked, found_tools, named_call
from cueline.events.message import ToolCall
from cueline.events.session import ModelReplied, ModelRequested, ToolReturned
from cueline.testing.given import given
from cueline.tools.catalogue import search_tools
from tests.session_example import agent, asking, saying, started, tool


def hidden(name, description="", *, sensitive=False, **parameters):
    spec = tool(name, sensitive=sensitive)
    schema = {"type": "object", "properties": parameters}
    update = {"description": description, "parameters": schema, "searched": True}
    return spec.model_copy(update=update)


ISSUES = (
    hidden("github__create_issue", "Open an issue in a repository.", title={}, body={}),
    hidden("github__list_issues", "List the issues of a repository.", sensitive=True),
    hidden("mail__send", "Send a message to a person.", to={}),
)
ALL = {spec.name: spec for spec in (*ISSUES, *search_tools(), tool("look"))}


def asked_for(name, **arguments):
    given = {"name": name} | ({"arguments": arguments} if arguments else {})
    return ToolCall(id="c1", name="call_tool", arguments=given)


def names(query):
    return [each["name"] for each in json.loads(found_tools(ISSUES, query))]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "github__create_issue"),
        ("LIST", "github__list_issues"),
        ("write to a person", "mail__send"),
        ("body", "github__create_issue"),
    ],
)
def test_tools_are_found_by_their_names_descriptions_and_arguments(query, first):
    assert first == names(query)[0]


def test_a_search_returns_what_a_call_needs():
    (found,) = json.loads(found_tools(ISSUES, "mail"))

    assert {"name", "description", "parameters"} == found.keys()


def test_a_search_returns_the_best_few():
    many = [hidden(f"s__tool_{n}", "Do it.") for n in range(30)]

    assert MOST_FOUND == len(json.loads(found_tools(many, "tool")))


def test_a_search_without_a_match_names_the_tools():
    told = found_tools(ISSUES, "zebra")

    assert "No tool fits 'zebra'. There are 3 tools, among them github__create_issue" in told


def test_a_tool_without_named_arguments_is_found_by_its_name():
    odd = ISSUES[0].model_copy(update={"parameters": {"properties": 7}})

    assert "github__create_issue" in found_tools([odd], "github")


def test_a_tool_that_the_model_is_shown_is_not_found():
    assert "There are 0 tools" in found_tools([tool("look")], "look")


def test_a_call_by_name_is_the_call_of_that_tool():
    call = named_call(asked_for("mail__send", to="ada"), ALL)

    assert ("c1", "mail__send", {"to": "ada"}) == (call.id, call.name, call.arguments)
    assert call.by_name
    assert None is call.problem


def test_a_call_may_name_a_tool_that_is_shown_and_leave_its_arguments_out():
    assert ("look", {}) == (
        named_call(asked_for("look"), ALL).name,
        named_call(asked_for("look"), ALL).arguments,
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("mail__sent", "There is no tool 'mail__sent'. Did you mean mail__send?"),
        ("zebra", "There is no tool 'zebra'. Search with find_tools."),
        ("call_tool", "There is no tool 'call_tool'. Search with find_tools."),
    ],
)
def test_a_call_of_an_unknown_name_says_what_to_do(name, problem):
    assert problem == named_call(asked_for(name), ALL).problem


def test_the_prompt_shows_what_the_model_said():
    said = asked_for("mail__send", to="ada")
    replied = saying("look").model_copy(update={"calls": (named_call(said, ALL),)})

    (told,) = json.loads(assistant_message(replied))["calls"]

    assert said.model_dump(mode="json") == told
    assert said == as_asked(said)


def reply(*calls):
    """Return a past whose model has made *calls*."""
    spec = agent().model_copy(update={"tools": tuple(ALL.values())})
    replied = saying().model_copy(update={"calls": calls, "stop_reason": "tool_use"})
    return given().when(started(spec), asking(), replied)


def test_a_search_is_answered_by_the_rules_without_a_runner():
    past = reply(ToolCall(id="c1", name="find_tools", arguments={"query": "mail"}))

    past.then(ModelReplied, ToolReturned, ModelRequested)
    assert "mail__send" in past.facts[1].output


def test_a_call_by_name_is_judged_and_run_as_the_tool_that_it_names():
    past = reply(named_call(asked_for("mail__send", to="ada"), ALL))

    (run,) = due(past.state)
    assert isinstance(run, RunTool)
    call = past.state.call("1.0")
    assert ("mail__send", "nothing") == (call.tool, call.declared)


def test_a_call_by_name_of_a_sensitive_tool_asks():
    past = reply(named_call(asked_for("github__list_issues"), ALL))

    (ask,) = due(past.state)
    assert isinstance(ask, AskApproval)
