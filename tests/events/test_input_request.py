"""What a call asks for, in words."""

from cueline.events.input_request import InputRequest, digest_of, request_text

FORM = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"},
        "number": {"type": "integer", "description": "how many"},
        "odd": True,
    },
    "required": ["colour"],
}


def test_the_text_names_each_value_with_its_choices():
    asked = InputRequest(key="k", message="What?", parameters=FORM)

    assert request_text(asked) == (
        "What?\ncolour: 1. red, 2. blue, Colour\nnumber: integer (optional), how many"
    )


def test_the_text_of_a_page_names_its_address():
    asked = InputRequest(key="k", message="Sign in.", url="https://example.com/in")

    assert "https://example.com/in" in request_text(asked)
    assert {} == asked.values


def test_a_schema_whose_properties_are_none_asks_for_no_values():
    assert {} == InputRequest(key="k", message="?", parameters={"properties": 3}).values


def test_other_requests_have_another_digest():
    one, other = (InputRequest(key="k", message=text) for text in ("One?", "Other?"))

    assert digest_of([one]) == digest_of([one.model_copy()])
    assert 3 == len({digest_of([one]), digest_of([other]), digest_of([one, other])})
