"""Before a deploy: `cueline log check` and `cueline log schema`."""

import asyncio
import json

import jsonschema_rs
import pytest

from cueline.cli.failure import Exit
from cueline.events.codec import FACTS
from tests.cli.test_damage import FLIP
from tests.client.test_log_check import WHOLE, with_other
from tests.histories.logs import write_log


def check(shell, *words):
    return shell("log", "check", "--against", str(shell.log), *words)


def test_a_log_of_today_passes(finished):
    done = check(finished)

    events = len(finished.types("one"))
    assert Exit.DONE == done.exit_code, done.output
    assert f"1 of 1 session, {events + 1} events: 0 differences\n" in done.stdout


def test_a_changed_payload_is_named_with_its_session_and_version(finished):
    finished.change(FLIP)

    done = check(finished)

    version = finished.types("one").index("SessionCompleted")
    assert Exit.FAILED == done.exit_code
    assert f"one@{version}: the event is damaged: the payload is not the one" in done.stdout
    assert "1 difference\n" in done.stdout


def test_an_unknown_type_is_told_to_a_program(shell):
    shell.log.parent.mkdir()
    asyncio.run(write_log(shell.log, with_other(WHOLE, 7, type="Unheard")))

    done = check(shell, "--all", "--json")

    told = json.loads(done.stdout)
    assert Exit.FAILED == done.exit_code
    assert (1, 1, 7) == (told["sessions"], told["of"], told["differences"][0]["version"])
    assert "the event Unheard, schema 1" in told["differences"][0]["reason"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "none.db"), "there is no log"),
        (("--against", "bad.db"), "bad.db: "),
        (("--sample", "3", "--all"), "give --sample or --all, not both"),
        (("--sample", "0"), "0 is less than 1"),
    ],
)
def test_what_cannot_be_checked_ends_with_exit_code_2(shell, words, said):
    (shell.folder / "bad.db").write_bytes(b"no log at all" * 100)

    done = shell("log", "check", *words)

    assert (Exit.REFUSED, True) == (done.exit_code, said in done.stderr), done.output


def test_the_schema_of_every_event_is_one_document(shell):
    document, alone = shell.json("log", "schema"), shell.json("log", "schema", "ModelRequested")

    assert FACTS.keys() <= document["$defs"].keys()
    assert document["$schema"] == alone["$schema"]
    assert document["$defs"]["ModelRequested"].items() <= alone.items()


def test_each_exported_fact_is_as_its_schema_says(finished):
    defs = finished.json("log", "schema")["$defs"]

    lines = finished("export", "one", "--format", "events").stdout.splitlines()

    for event in map(json.loads, lines):
        whole = {"$ref": f"#/$defs/{event['type']}", "$defs": defs}
        jsonschema_rs.Draft202012Validator(whole).validate(event["fact"])


def test_a_misspelt_event_gets_a_suggestion(shell):
    done = shell("log", "schema", "ModelRequest")

    assert Exit.REFUSED == done.exit_code
    assert "did you mean 'ModelRequested'?" in done.stderr
