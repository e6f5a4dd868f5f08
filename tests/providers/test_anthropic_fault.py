"""What the errors of the API mean."""

import pytest

from cueline.providers.fault import code_of, fault_of, kind_of, retry_after


def test_a_status_goes_before_a_type():
    assert "unavailable" == kind_of(503, "invalid_request_error")


@pytest.mark.parametrize("status", [200, 400])
def test_a_status_that_says_little_leaves_it_to_the_type(status):
    assert "auth" == kind_of(status, "billing_error")


def test_an_unknown_error_code_is_permanent():
    assert {"unknown"} == {kind_of(409, "conflict_error"), kind_of(599, None)}


def test_a_message_is_cut_to_a_length_that_can_be_kept():
    assert len(str(fault_of(400, None, "x" * 10_000, {}))) < 600


NOW = "Sat, 21 Nov 2026 22:00:00 GMT"
WAITS = {
    "none asked for": ({}, None),
    "seconds": ({"retry-after": "7"}, 7),
    "finer": ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
    "a moment": ({"retry-after": "Sat, 21 Nov 2026 22:00:30 GMT", "date": NOW}, 30),
    "a moment gone by": ({"retry-after": "Sat, 21 Nov 2026 21:00:00 GMT", "date": NOW}, 0),
    "a moment without a date": ({"retry-after": NOW}, None),
    "nonsense": ({"retry-after": "soon", "date": NOW}, None),
    "number nonsense": ({"retry-after": "1e999"}, None),
    "below zero": ({"retry-after-ms": "-1"}, None),
    "not a number": ({"retry-after-ms": "nan"}, None),
}


@pytest.mark.parametrize(("headers", "wait"), WAITS.values(), ids=WAITS)
def test_the_wait_is_what_the_headers_ask_for(headers, wait):
    assert wait == retry_after(headers)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            {"error": {"type": "invalid_request_error", "code": "context_length_exceeded"}},
            "context_length_exceeded",
        ),
        ({"error": {"type": "rate_limit_error", "code": "a code of its own"}}, None),
        ({"error": {"code": 400}}, None),
        ({"error": "no"}, None),
        ("<html>", None),
    ],
)
def test_a_gateways_code_counts_where_it_says_more_than_its_type(body, code):
    assert code == code_of(body)
