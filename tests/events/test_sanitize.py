"""No secret gets into the log (I11)."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.errors import SecretLeakError
from cueline.events.agent import AgentSpec
from cueline.events.codec import Codec
from cueline.events.sanitize import (
    CUT,
    REDACTED,
    Redactor,
    cut,
    sanitize,
    sanitize_record,
)
from cueline.events.session import SessionStarted, ToolReturned
from tests.events.cleaning import (
    CANARY,
    CODEC,
    REDACTOR,
    encode,
    in_lines,
    redactor_of,
    replied,
    sanitised,
    shifted,
)

FORMS = {
    "plain": CANARY,
    "json": json.dumps(CANARY),
    "json-unicode": json.dumps(CANARY, ensure_ascii=False),
    "json-slash": json.dumps(CANARY).replace("/", "\\/"),
    "json-in-json": json.dumps(json.dumps({"key": CANARY})),
    "base64": base64.b64encode(CANARY.encode()).decode(),
    "base64-shifted-1": shifted(base64.b64encode, b"x"),
    "base64-shifted-2": shifted(base64.b64encode, b"user:"),
    "base64-urlsafe": base64.urlsafe_b64encode(CANARY.encode()).decode(),
    "base64-urlsafe-shifted": shifted(base64.urlsafe_b64encode, b"x"),
    "base64-json": base64.b64encode(CANARY.encode()).decode().replace("/", "\\/"),
    "base64-url": quote(base64.b64encode(CANARY.encode()), safe=""),
    "url": quote(CANARY, safe=""),
    "url-path": quote(CANARY),
    "url-form": quote_plus(CANARY),
    "url-lower": re.sub("%..", lambda hexadecimal: hexadecimal[0].lower(), quote(CANARY, safe="")),
    "url-javascript": quote(CANARY, safe="~!'()*"),
    "url-by-code": "".join(f"%{byte:02X}" for byte in CANARY.encode()),
    "json-by-code": "".join(f"\\u{ord(letter):04x}" for letter in CANARY),
    "json-in-json-in-json": json.dumps(json.dumps(json.dumps(CANARY))),
    "base64-lines": in_lines(shifted(base64.b64encode, b"user:")),
    "base64-lines-json": json.dumps({"data": in_lines(shifted(base64.b64encode, b"x"))}),
    "base64-lines-indented": shifted(base64.b64encode, b"").replace("e", "e\r\n    "),
    "hexadecimal": CANARY.encode().hex(),
    "hexadecimal-upper": CANARY.encode().hex().upper(),
    "hexadecimal-lines": in_lines(CANARY.encode().hex()),
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@each_form
def test_a_secret_is_taken_out_in_every_form(form):
    text, changed = REDACTOR.redact(f"before {form} after")

    assert changed
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert REDACTED in text
    assert not REDACTOR.finds(text.encode())


@each_form
@pytest.mark.parametrize(
    "fact",
    [
        lambda form: ToolReturned(effect="1.0", attempt=1, output=f"a {form} b"),
        lambda form: ToolReturned(effect="1.0", attempt=1, output=f"{'x' * 40_000} {form} b"),
        lambda form: replied({"headers": [{"auth": f"Bearer {form}"}]}),
        lambda form: replied({"deep": {f"a {form}": 1}}),
    ],
    ids=["text", "long", "nested", "dict-key"],
)
def test_a_fact_with_a_secret_is_refused_until_it_is_cleaned(form, fact):
    dirty = fact(form)

    with pytest.raises(SecretLeakError, match=dirty.type):
        encode(dirty)
    kept, changed = sanitize(dirty, REDACTOR)
    recorded = encode(kept)

    assert changed
    assert (kept, False) == sanitize(kept, REDACTOR)
    assert not any(REDACTOR.finds(b) for b in (recorded.draft.payload, *recorded.blobs.values()))


def test_an_error_does_not_tell_the_secret():
    with pytest.raises(SecretLeakError) as raised:
        encode(ToolReturned(effect="1.0", attempt=1, output=CANARY))

    assert CANARY not in str(raised.value)


def test_a_blob_with_a_secret_is_refused():
    with pytest.raises(SecretLeakError):
        CODEC.check_blob(b"\xff" + CANARY.encode())


def test_a_blob_without_one_is_let_through():
    assert CODEC.check_blob(b"\xff nothing to see") is None


# Each mark completes the next one: nothing is let through for being nested.
def test_secrets_that_marks_make_anew_leave_nothing_of_the_text():
    redactor = redactor_of(["aaaaaaaa", f"{REDACTED}b"])

    assert (REDACTED, True) == redactor.redact("aaaaaaaa" + "b" * 99)


@pytest.mark.parametrize("value", ["", "seven77", " \n "])
def test_what_is_too_short_is_no_secret(value):
    assert ("so seven77 it is", False) == redactor_of([value]).redact("so seven77 it is")


def test_white_space_around_a_secret_is_not_part_of_it():
    assert (f"a {REDACTED} b", True) == redactor_of(["\n12345678\n"]).redact("a 12345678 b")


def test_a_secret_that_is_a_number_is_found_among_numbers():
    assert ({"pin": REDACTED}, True) == sanitize({"pin": 12345678}, redactor_of(["12345678"]))


def test_a_secret_within_another_leaves_nothing_of_either():
    redactor = redactor_of(["password", "password-and-more"])

    assert (f"{REDACTED} {REDACTED}", True) == redactor.redact("password-and-more password")


@pytest.mark.parametrize("value", ["[redacted]", "redacted", "read_only", "may_it_run", "output"])
def test_a_secret_that_is_a_word_of_ours_stops_nothing(value):
    codec = Codec(redactor_of([value]))
    fact = ToolReturned(effect="1.0", attempt=1, output=f"the {value} word")

    kept, _ = sanitize(fact, redactor_of([value]))

    assert encode(kept, codec).draft.payload


def test_words_that_the_code_knows_are_left_alone():
    agent = AgentSpec(name="a", provider="scripted", model="m")
    fact = SessionStarted(agent=agent, goal=None, open=True, attached=False, epoch=1)

    assert (fact, False) == sanitize(fact, redactor_of(["sensitive", "SessionStarted"]))


def test_a_secret_is_taken_out_of_the_name_of_who_did_it():
    fact = ToolReturned(effect="1.0", attempt=1, output="")

    draft = CODEC.encode(fact, actor=f"user:{CANARY}\0", occurred_us=1).draft

    assert f"user:{REDACTED}\ufffd" == draft.actor


# The letters of a line break are left out where a text is searched quickly.
@pytest.mark.parametrize(
    "secret", ["nrnrnrnr", "corner-n\\r", "BEGIN\nkey\r\nEND", "a\tb\tc\td\te"]
)
def test_a_secret_with_line_breaks_and_their_letters_is_found(secret):
    redactor = redactor_of([secret])

    assert (f"a {REDACTED} b", True) == redactor.redact(f"a {secret} b")
    assert (f'a "{REDACTED}" b', True) == redactor.redact(f"a {json.dumps(secret)} b")
    assert ("a corer-r b", False) == redactor.redact("a corer-r b")


@pytest.mark.parametrize("form", [FORMS["plain"], FORMS["url"], FORMS["hexadecimal-lines"]])
def test_a_secret_that_is_cut_in_two_is_recorded_in_no_part(form):
    for at in range(5, len(form) - 5):
        text, changed = REDACTOR.redact(f"before {form[:at]}{CUT}[…]{CUT}{form[at:]} after")

        assert (f"before {REDACTED}[…]{REDACTED} after", True) == (text, changed)
        assert (text, False) == REDACTOR.redact(text)


def test_a_text_without_a_secret_loses_nothing_at_a_cut():
    fact = ToolReturned(effect="1.0", attempt=1, output=cut("x" * 9 + "sk and more", 11))

    with pytest.raises(SecretLeakError):
        encode(fact, Codec())

    assert "x" * 9 + "sk" == sanitize_record(fact, REDACTOR).output
    assert "x" * 9 + "sk" == sanitize_record(fact, Redactor()).output


def test_a_letter_that_was_cut_in_two_does_not_hide_the_secret_before_it():
    assert (f"a {REDACTED}", True) == REDACTOR.redact(f'a sk-k3y/"\\+ \ufffd{CUT}')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bad key cd-efgh-ijkl!", f"bad key {REDACTED}!"),
        ("bad key ab-cd-…-ijkl", "bad key ab-cd-…-ijkl"),
        (f"bad key {'ab-cd-efgh-ijkl'} or cd-efgh-", f"bad key {REDACTED} or {REDACTED}"),
    ],
)
def test_a_part_of_a_secret_is_taken_out_where_parts_are_looked_for(text, told):
    assert told == redactor_of(["ab-cd-efgh-ijkl"]).redact_parts(text)


SECRETS = st.lists(st.text(min_size=8, max_size=12), max_size=3)


@given(secrets=SECRETS, parts=st.lists(st.text(max_size=5)), data=st.data())
def test_what_was_redacted_holds_no_secret(secrets, parts, data):
    redactor = redactor_of(secrets)
    planted = data.draw(st.lists(st.sampled_from([*secrets, "x"]))) + parts

    text, _ = sanitised("".join(data.draw(st.permutations(planted))))
    kept, _ = redactor.redact(text)

    assert (kept, False) == redactor.redact(kept)
    assert not any(s in kept for s in secrets if s == s.strip() and s in text and s not in REDACTED)


@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"xyz"])
@pytest.mark.parametrize("encoder", [base64.b64encode, base64.urlsafe_b64encode])
def test_the_whole_secret_is_taken_out_of_base64(before, encoder):
    secret = b"k3y-of-ada"
    encoded = encoder(before + secret + b"!!!").decode()

    kept, _ = redactor_of([secret.decode()]).redact(encoded)

    head, _, tail = kept.partition(REDACTED)
    first, last = len(before) * 8, (len(before) + len(secret)) * 8
    assert (-(-first // 6), last // 6) == (len(head), len(encoded) - len(tail))
