"""A thread of LangGraph in PostgreSQL."""

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from cueline.adapters.langgraph import CuelineSaver


@pytest.fixture
def saver(one_server):
    with CuelineSaver(one_server.empty_log()) as made:
        yield made


async def test_a_thread_is_stored_read_and_deleted(saver):
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    state = {**empty_checkpoint(), "channel_values": {"text": "x" * 100_000}}

    stored = await saver.aput(config, state, {"step": 1}, {})
    saver.put_writes(stored, [("text", "y")], "task")
    found = await saver.aget_tuple(config)
    saver.delete_thread("t1")

    assert (state, 1) == (found.checkpoint, found.metadata["step"])
    assert [("task", "text", "y")] == found.pending_writes
    assert [] == list(saver.list(None))
