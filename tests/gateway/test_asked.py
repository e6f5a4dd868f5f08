"""A call that asks a person, for an editor and for a client of MCP."""

from datetime import UTC, datetime
from types import SimpleNamespace

from cueline.client.question import PersonalQuestion
from cueline.events.approval import ApprovalOpened
from cueline.events.input_request import InputRequest
from cueline.gateway.acp_session import answer_for, options_of
from cueline.gateway.mcp_wait import elicitation_of

NOW = datetime(2026, 5, 4, tzinfo=UTC)
FORM = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}


def opened(**request):
    return ApprovalOpened(
        session="session-default/1",
        effect="1.0",
        digest="d",
        question="what_to_answer",
        tool="paint",
        arguments={},
        summary="paint()",
        requests=(InputRequest(key="k", message="Which?", **request),),
        epoch=1,
        opened_at=NOW,
        deadline_at=NOW,
    )


def names(asked):
    return [each.name for each in options_of(asked, PersonalQuestion())]


def test_an_editor_offers_the_choices_and_a_refusal():
    assert ["red", "blue", "Deny"] == names(opened(parameters=FORM))
    assert ["yes", "Deny"] == names(opened(url="https://example.com"))
    text = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert ["Deny"] == names(opened(parameters=text))


def test_a_choice_of_the_editor_is_the_answer():
    first = options_of(opened(parameters=FORM), PersonalQuestion())[0]

    answer = answer_for(first.option_id)
    assert ("grant", {"result": "red"}) == (answer[2], answer[3])
    assert "deny" == answer_for("deny")[2]


def test_a_client_of_mcp_gets_the_form_itself():
    asked = opened(parameters=FORM)
    rows = tuple(each.model_dump(mode="json") for each in asked.requests)
    form = elicitation_of(SimpleNamespace(session="1", requests=rows)).params

    assert FORM == form.requested_schema
    assert "1: Which?" == form.message
