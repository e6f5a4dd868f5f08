"""Tools that the model is not shown, through the host: what it gets, and what is recorded."""

import json

from cueline.events.session import ModelReplied
from cueline.testing.fakes import asks_for, says, tool_spec
from cueline.tools.catalogue import search_tools
from tests.actors.session_harness import SESSION, SessionHarness

HIDDEN = tool_spec("mail__send").model_copy(update={"searched": True})
TOOLS = (tool_spec("read", "read_only"), HIDDEN, *search_tools())
CALL = {"name": "mail__send", "arguments": {"to": "ada"}}


async def test_the_model_is_shown_two_tools_and_what_it_said_and_the_log_has_the_call():
    replies = [asks_for(("find_tools", {"query": "send mail"})), asks_for(("call_tool", CALL))]
    scene = SessionHarness([*replies, says("Sent.")], TOOLS)

    await scene.begin()

    asked = scene.model.asked
    assert {("read", "find_tools", "call_tool")} == {
        tuple(tool.name for tool in each.agent.tools) for each in asked
    }
    told = [json.loads(message) for message in asked[-1].messages]
    *_, (said,) = [each["calls"] for each in told if each.get("calls")]
    assert ("call_tool", CALL) == (said["name"], said["arguments"])
    recorded = [f for f in await scene.outside.facts(SESSION) if isinstance(f, ModelReplied)]
    assert ["find_tools", "mail__send"] == [f.calls[0].name for f in recorded if f.calls]
    assert ["mail__send"] == [start.tool for start in scene.executor.starts]
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_session_that_is_loaded_again_has_the_same_prompt():
    scene = SessionHarness([asks_for(("call_tool", CALL)), says("Sent.")], TOOLS)
    await scene.begin(open=True)

    sent = scene.model.asked[-1].messages
    assert list(sent) == (await scene.outside.transcript(SESSION))[: len(sent)]
