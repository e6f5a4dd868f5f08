"""A session as a run of AG-UI, read by the models of the protocol's authors."""

import json

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from tests.gateway.conftest import served
from tests.gateway.test_api import PAID, PAYS, TALKS, pay
from tests.scripted import scripted

EVENTS = TypeAdapter(Event)


async def run(http, thread="one", *, said=None, **asked):
    """Return the events of one run, as the protocol's models read them."""
    messages = [] if said is None else [{"id": f"m-{said}", "role": "user", "content": said}]
    body = {"threadId": thread, "runId": "r", "messages": messages} | asked
    answer = await http.post("/v1/agui", json=body)
    assert 200 == answer.status_code, answer.text
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [EVENTS.validate_python(json.loads(line)) for line in lines]


def types(events):
    return [each.type.value for each in events]


async def test_a_message_is_answered_as_a_run(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        events = await run(http, said="And?")
        sent = [fact.text async for _, fact in runtime.log.journal().read("inbox-default/one", 1)]

    text = "".join(each.delta for each in events if each.type == "TEXT_MESSAGE_CONTENT")
    shown = list(dict.fromkeys(types(events)))
    assert ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"] == shown[:3]
    assert ["TEXT_MESSAGE_END", "RUN_FINISHED"] == shown[3:]
    assert ("Good night.", "Good night.") == (text, events[-1].result)
    assert ["And?"] == sent


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, [3]),
        ({"status": "resolved", "payload": {"approved": False}}, []),
        ({"status": "resolved", "payload": "yes"}, []),
        ({"status": "cancelled"}, []),
    ],
)
async def test_a_call_that_asks_interrupts_the_run_and_the_next_one_answers(log, answer, paid):
    PAID.clear()
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), None, id="one", open=True)
        await session.result()
        asked = await run(http, said="Pay")
        interrupt = asked[-1].outcome.interrupts[0]
        done = await run(http, resume=[{"interruptId": interrupt.id, **answer}])

    assert ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"] == types(asked)[-4:-1]
    assert ("1.0", {"amount": 3}) == (interrupt.tool_call_id, interrupt.metadata["arguments"])
    assert "TOOL_CALL_RESULT" in types(done)
    assert ("success", paid) == (done[-1].outcome.type, PAID)


async def test_a_failed_session_is_an_error_of_the_run(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        await run(http, said="And?")
        failed = await run(http, said="More?")

    assert "RUN_ERROR" == failed[-1].type
    assert "no reply" in failed[-1].message


async def test_a_new_thread_needs_a_blueprint(log):
    async with served(log) as (_, http):
        body = {"threadId": "new", "runId": "r", "messages": []}
        none = await http.post("/v1/agui", json=body)
        unknown = await http.post("/v1/agui", json=body | {"forwardedProps": {"blueprint": "x"}})

        odd = await http.post("/v1/agui", json=body | {"forwardedProps": [None]})

    assert 422 == odd.status_code
    assert (422, "forwardedProps") == (none.status_code, none.json()["field"])
    assert (409, True) == (unknown.status_code, "no runner has ever offered" in unknown.text)
