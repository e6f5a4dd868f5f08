"""The rules of tokens: they count until they expire or end, and a code counts once."""

from datetime import UTC, datetime, timedelta

import pytest

from cueline.deciders.person import Person, wrong_scope
from cueline.deciders.token import TOKEN, Exchange, Issue, Revoke
from cueline.events.token import TokenIssued, TokenRevoked

NOW = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)
ISSUED = TokenIssued(
    token="abc",
    digest="d",
    person="ada",
    scopes=("send",),
    at=NOW,
    expires_at=NOW + timedelta(days=1),
    by="lin",
)
OTHER = ISSUED.model_copy(update={"token": "def"})


def ended(after=timedelta(hours=1), **told):
    return TokenRevoked(token="abc", at=NOW + after, by="lin", **told)


def test_a_token_counts_until_it_expires():
    (token,) = TOKEN.replay([*TOKEN.decide(Issue(ISSUED), TOKEN.initial_state)]).values()

    assert token.counts(NOW + timedelta(hours=23))
    assert not token.counts(NOW + timedelta(days=1))


def test_a_revoked_token_counts_until_then():
    state = TOKEN.replay([ISSUED])
    (event,) = TOKEN.decide(Revoke(ended()), state)
    token = TOKEN.replay([event], state)["abc"]

    assert token.counts(NOW + timedelta(minutes=59))
    assert not token.counts(NOW + timedelta(hours=1))
    assert [] == TOKEN.decide(Revoke(ended()), TOKEN.replay([event], state))


def test_a_code_is_exchanged_once():
    state = TOKEN.replay([ISSUED])
    events = TOKEN.decide(Exchange(ended(reason="used"), OTHER), state)

    assert [ended(reason="used"), OTHER] == events
    assert [] == TOKEN.decide(Exchange(ended(), OTHER), TOKEN.replay(events, state))


@pytest.mark.parametrize("command", [Revoke(ended(timedelta(days=2))), Revoke(ended())])
def test_a_token_that_expired_or_never_was_cannot_end(command):
    state = TOKEN.replay([OTHER] if command.revoked.at < NOW + timedelta(days=1) else [ISSUED])

    assert [] == TOKEN.decide(command, state)


@pytest.mark.parametrize(
    ("scopes", "may", "may_not"),
    [
        ((), (), (("read",), ("send",))),
        (("read",), (("read",),), (("send",), ("approve", "shell"), ("admin",))),
        (("send",), (("read",), ("send",)), (("approve", "shell"), ("admin",))),
        (("approve",), (("read",), ("approve", "shell")), (("send",), ("admin",))),
        (("approve:write_*",), (("approve", "write_file"),), (("approve", "shell"), ("approve",))),
        (("admin",), (("read",), ("send",), ("approve", "shell"), ("admin",)), ()),
    ],
)
def test_a_person_may_what_the_scopes_say(scopes, may, may_not):
    person = Person("ada", scopes=frozenset(scopes))

    assert all(person.may(*each) for each in may)
    assert not any(person.may(*each) for each in may_not)


@pytest.mark.parametrize("scope", ["odd", "approve:", "read:all", "", "Send"])
def test_a_wrong_scope_is_named(scope):
    assert scope == wrong_scope(["read", "approve:shell", scope])
    assert wrong_scope(["read", "approve:shell"]) is None


def test_a_code_that_has_expired_is_forgotten_and_a_token_is_not():
    code = ISSUED.model_copy(update={"token": "code", "kind": "code"})
    later = OTHER.model_copy(update={"at": NOW + timedelta(days=2)})
    state = TOKEN.replay([ISSUED, code, later])
    gone = TokenRevoked(token="code", at=NOW, by="lin", reason="used")

    assert {"abc", "def"} == set(state)
    assert state == TOKEN.replay([gone], state)


def test_a_replaced_token_is_not_replaced_again_and_ends_when_it_is_revoked():
    state = TOKEN.replay([ISSUED, ended(timedelta(hours=1), reason="replaced")])
    now = ended(timedelta(minutes=1))

    assert [] == TOKEN.decide(Exchange(ended(), OTHER), state)
    (event,) = TOKEN.decide(Revoke(now), state)
    assert not TOKEN.replay([event], state)["abc"].counts(NOW + timedelta(minutes=2))
