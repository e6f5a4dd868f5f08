"""Every question of `docs/guides/audit.md`, asked of its example log in both kinds of log."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cueline.cli import app
from cueline.runtime.loop import run
from tests.audit_example import fill

GUIDE = Path(__file__).parents[2] / "docs/guides/audit.md"
ASKED = re.findall(
    r"(?m)^### (.+)\n(?:.+\n|\n)*?```console\n\$ cueline ((?:.|\n)+?\n)```", GUIDE.read_text()
)


def answers(url):
    """Yield each question of the guide, its answer there, and the answer from the log."""
    run(fill(url))
    for question, block in ASKED:
        command, _, answer = block.replace("\n> ", "\n").partition("\n")
        while command.count('"') % 2:
            more, _, answer = answer.partition("\n")
            command += f"\n{more}"
        done = CliRunner().invoke(app, [*shlex.split(command), "--log", url])
        yield question, answer, done.output


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_question_has_its_answer(kind, request, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "300")
    server = kind == "postgres" and request.getfixturevalue("one_server")
    url = str(server.empty_log("audit") if server else tmp_path / "log.db")

    told = list(answers(url))

    assert 20 == len(told)
    for question, expected, answer in told:
        assert (question, expected) == (question, answer)
