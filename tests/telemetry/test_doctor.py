"""What `cueline doctor` says of the back-end for traces."""

import json

import pytest
from typer.testing import CliRunner

from cueline.cli import app


@pytest.fixture
def cueline(tmp_path, monkeypatch, receiver):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUELINE_TELEMETRY_ENDPOINT", receiver.url)
    (tmp_path / "script.toml").write_text('[[reply]]\ntext = "Good evening."\n')
    (tmp_path / "agent.toml").write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
    )

    def run(*words):
        done = CliRunner().invoke(app, [*words, "--log", "log.db"])
        assert done.exit_code in {0, 1}, done.output
        return done.stdout

    return run


def test_the_doctor_says_how_far_the_back_end_is(cueline, receiver):
    def found():
        every = {each["subject"]: each for each in json.loads(cueline("doctor", "--json"))}
        return every["telemetry"]["verdict"], every["telemetry"]["found"]

    cueline("run", "Go", "--agent", "agent.toml", "--inline")
    assert ("warn", f"{receiver.url} has the traces up to event 0 of 6") == found()

    cueline("telemetry", "export")

    assert ("good", f"{receiver.url} has the traces up to event 6 of 7") == found()
