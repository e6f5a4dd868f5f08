"""The log lines of a process: none, or JSON with session and correlation id."""

import json
import logging

import pytest

from cueline.actors.session_log import LOGGER
from cueline.client.runtime import open_runtime
from cueline.errors import ConfigError
from cueline.runtime.log_lines import start_logging
from tests.scripted import HELLO, scripted
from tests.telemetry.conftest import LEAD


@pytest.fixture(autouse=True)
def as_before():
    handlers = [*LOGGER.handlers]
    yield
    LOGGER.handlers[:], LOGGER.propagate = handlers, True
    LOGGER.setLevel(logging.NOTSET)


async def lines_of(path, capsys, agent=HELLO, **environ):
    start_logging(environ)
    async with open_runtime(path, on="inline", on_trouble=lambda *_: None) as runtime:
        await (await runtime.start(agent, "Please", id="one")).result()
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def test_nothing_is_logged_by_default(tmp_path, capsys):
    assert [] == await lines_of(tmp_path / "log.db", capsys)


async def test_each_fact_is_a_line_with_its_session_and_the_top_of_its_tree(tmp_path, capsys):
    lines = await lines_of(tmp_path / "log.db", capsys, LEAD, CUELINE_LOG_LEVEL="debug")

    assert {"one"} == {line["correlation_id"] for line in lines}
    assert {"one", "one.1.0"} == {line["session"] for line in lines}
    started = next(line for line in lines if line["message"] == "ToolStarted")
    assert ("debug", "look", "1.0", 1) == tuple(
        started[name] for name in ("level", "tool", "effect", "attempt")
    )
    versions = [line["version"] for line in lines if line["session"] == "one"]
    assert [*range(1, len(versions) + 1)] == versions
    said = json.dumps(lines)
    assert [] == [text for text in ("Please", "Seen.", "secret place", "contents") if text in said]


async def test_a_level_leaves_out_what_is_below_it(tmp_path, capsys):
    agent = scripted('reply = [{ fail = { kind = "invalid_request" } }]')

    lines = await lines_of(tmp_path / "log.db", capsys, agent, CUELINE_LOG_LEVEL="warning")

    assert ["ModelFailed", "SessionFailed"] == [line["message"] for line in lines]
    assert {"invalid_request"} == {line["kind"] for line in lines}


def test_an_unknown_level_is_refused():
    with pytest.raises(ConfigError, match=r"'loud' is no level; known are debug, info"):
        start_logging({"CUELINE_LOG_LEVEL": "loud"})
