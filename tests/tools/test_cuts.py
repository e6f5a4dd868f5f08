"""Where a tool leaves something out, a secret that was cut in two is recorded in no part (I11)."""

import pytest
from pydantic import SecretStr

from cueline.actors.rendered_output import sanitize_text
from cueline.errors import ToolFailedError
from cueline.events.sanitize import CUT, REDACTED, Redactor
from cueline.tools import guarded_process
from cueline.tools.files import READ_LIMIT, read_file
from cueline.tools.guarded_process import TOLD
from cueline.tools.result import MESSAGE_LIMIT, failure_of, output_of
from cueline.tools.search import LINE_LIMIT, search_files
from cueline.tools.shell import run_command

CANARY = "c4nary-0123456789-abcdefghij"
HALF = len(CANARY) // 2
REDACTOR = Redactor([SecretStr(CANARY)])


def recorded(text):
    kept, cleaned = sanitize_text(text, REDACTOR)
    assert cleaned
    assert CUT not in kept
    return kept


def test_a_line_that_was_found(use, workspace):
    (workspace / "long").write_text(f"{'x' * (LINE_LIMIT - HALF)}{CANARY}\n")

    found = recorded(use(search_files, pattern="x"))

    assert f"long:1: {'x' * (LINE_LIMIT - HALF)}{REDACTED}" == found


def test_the_rest_of_a_line_that_is_searched_in_parts(use, workspace):
    (workspace / "long").write_text(f"{'x' * (READ_LIMIT + 1 - HALF)}{CANARY} END\n")

    found = recorded(use(search_files, pattern="END"))

    assert f"long:1: {REDACTED} END" == found


def test_the_end_of_a_file_that_is_read_in_part(use, workspace):
    (workspace / "long").write_text(f"{'x' * (READ_LIMIT - HALF)}{CANARY}\nnext\n")

    text = recorded(use(read_file, path="long"))

    assert f"x{REDACTED}\n[line 1 is cut" in text


def test_a_secret_of_several_lines_that_is_read_in_part(use, workspace):
    redactor = Redactor([SecretStr("BEGIN KEY\nfirst line\nsecond line\nEND KEY")])
    (workspace / "key").write_text("BEGIN KEY\nfirst line\nsecond line\nEND KEY")

    first = use(read_file, path="key", max_lines=2)
    second = use(read_file, path="key", start_line=3)

    assert f"{REDACTED}\n[go on with start_line=3" in sanitize_text(first, redactor)[0]
    assert REDACTED == sanitize_text(second, redactor)[0]


def test_the_last_that_was_printed_before_a_time_out(use):
    rest = "y" * (TOLD - HALF - len(CANARY[:HALF]))
    command = f"printf {CANARY}{rest}{CANARY[:HALF]}; exec sleep 60"

    with pytest.raises(ToolFailedError) as failed:
        use(run_command, command=command, timeout_seconds=1)

    last = recorded(failed.value.message).partition("The last it printed:\n")[2]
    assert f"{REDACTED}{rest}{REDACTED}" == last


def test_the_end_of_what_a_command_printed(use, monkeypatch):
    monkeypatch.setattr(guarded_process, "OUTPUT_LIMIT", 100)

    output = use(run_command, command=f"printf {'x' * (100 - HALF)}{CANARY}")

    assert f"x{REDACTED}\n[the first" in recorded(output.content.decode())


def test_the_end_of_what_a_tool_returned(monkeypatch):
    monkeypatch.setattr("cueline.tools.result.OUTPUT_LIMIT", 100)

    output = output_of(f"{'x' * (100 - HALF)}{CANARY}")

    assert f"{'x' * (100 - HALF)}{REDACTED}" == recorded(output.content.decode())


def test_the_end_of_an_error():
    before = "x" * (MESSAGE_LIMIT - HALF - len("ValueError: "))

    failure = failure_of(ValueError(f"{before}{CANARY}"))

    assert recorded(failure.message).endswith(f"x{REDACTED}")
