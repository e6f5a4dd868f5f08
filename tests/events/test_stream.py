"""Names of streams: what they are made of, and what is none."""

import pytest

from cueline.errors import InvalidNameError
from cueline.events.stream import (
    category_of,
    check_stream,
    effect_of,
    id_of,
    session_stream,
    shown,
    sibling,
    stream_name,
    tenant_of,
)


def test_a_name_is_made_of_its_parts_and_taken_apart_again():
    name = stream_name("approval", "7f3a.1.0.1", tenant="team_a")

    assert "approval-team_a/7f3a.1.0.1" == name
    assert ("approval", "team_a", "7f3a.1.0.1") == (category_of(name), tenant_of(name), id_of(name))
    assert "1.0" == effect_of(id_of(name))


def test_a_sibling_has_the_same_tenant_and_id():
    assert "inbox-team_a/7f3a" == sibling("session-team_a/7f3a", "inbox")


def test_a_user_sees_the_tenant_where_it_is_not_the_default_one():
    assert ("7f3a", "team_a/7f3a") == (shown("session-default/7f3a"), shown("session-team_a/7f3a"))


# 004-042: ids become names of files.
@pytest.mark.parametrize(
    "id_", ["", ".", "..", "../x", "a/b", "A", "a b", "a..b", "-a", "a-", "ü", "a\n"]
)
def test_what_has_another_form_is_no_id(id_):
    with pytest.raises(InvalidNameError, match="an id is"):
        stream_name("session", id_)
    with pytest.raises(InvalidNameError):
        check_stream(f"session-default/{id_}")


def test_an_id_has_128_letters_at_the_most():
    with pytest.raises(InvalidNameError, match="at most 128"):
        stream_name("session", "x" * 129)
    assert check_stream(stream_name("session", "x" * 128, "y" * 40)) is None


def test_an_approval_has_room_for_its_place_in_a_session_of_the_longest_id():
    name = stream_name("approval", f"{'x' * 128}.1000.100.10", "y" * 40)

    assert check_stream(name) is None
    with pytest.raises(InvalidNameError, match="at most 128"):
        stream_name("approval", "x" * 161)


@pytest.mark.parametrize("tenant", ["", "A", "a-b", "a/b", "..", "x" * 41])
def test_what_has_another_form_is_no_tenant(tenant):
    with pytest.raises(InvalidNameError, match="a tenant is"):
        stream_name("session", "a", tenant)
    with pytest.raises(InvalidNameError):
        check_stream(f"session-{tenant}/a")


@pytest.mark.parametrize("stream", ["session-default/7f3a", "session-team_a/7f3a"])
def test_a_session_is_named_by_its_stream_and_by_what_a_user_sees(stream):
    assert [stream] * 3 == [
        session_stream(name) for name in (stream, shown(stream), sibling(stream, "inbox"))
    ]


@pytest.mark.parametrize("name", ["", "/", "a/", "/a", "session-/a", "a/b/c", "../x", "A"])
def test_what_has_another_form_names_no_session(name):
    with pytest.raises(InvalidNameError):
        session_stream(name)
