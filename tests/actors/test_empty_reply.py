"""A model that ends its turn without a word, on fakes."""

from cueline.actors.model_port import ModelReply
from cueline.events.message import ThinkingBlock
from cueline.events.session import ModelFailed, SessionCompleted, SessionFailed
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness

EMPTY = says("")


THOUGHTS = ModelReply(content=(ThinkingBlock(text="Hm."),), stop_reason="end_turn", model="fake")


async def test_a_model_that_only_thinks_is_asked_once_more():
    scene = SessionHarness({(1, 1): THOUGHTS, (1, 2): says("Yes.")})

    await scene.begin()
    await scene.clock.advance(60)

    failed = [f for f in await scene.outside.facts(SESSION) if isinstance(f, ModelFailed)]
    assert [("1.m", "no_answer")] == [(each.effect, each.kind) for each in failed]
    assert "Yes." == (await scene.last(SessionCompleted)).result


async def test_a_session_whose_model_only_thinks_fails():
    scene = SessionHarness({(1, 1): THOUGHTS, (1, 2): THOUGHTS})

    await scene.begin()
    await scene.clock.advance(60)

    assert "no_answer" == (await scene.last(SessionFailed)).kind


async def test_a_message_that_is_met_with_nothing_is_asked_again_and_a_tool_result_is_not():
    scene = SessionHarness({(1, 1): EMPTY, (1, 2): asks_for(("read", {})), (2, 1): EMPTY})

    await scene.begin()
    await scene.clock.advance(60)

    failed = [f for f in await scene.outside.facts(SESSION) if isinstance(f, ModelFailed)]
    assert [("1.m", "malformed_reply")] == [(each.effect, each.kind) for each in failed]
    assert "" == (await scene.last(SessionCompleted)).result
