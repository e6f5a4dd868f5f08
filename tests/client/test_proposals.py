"""Proposals: what they say, and when their commit counts; nothing drives the sessions here."""

from datetime import timedelta
from random import Random

import pytest

import cueline
from cueline.client.proposals import commit
from cueline.errors import (
    ConfigError,
    NotUndoableError,
    ProposalError,
    ProposalExpiredError,
    ProposalStaleError,
    RejectedError,
    SessionFinishedError,
)
from cueline.events.agent import own_model
from cueline.events.fleet import FleetTaken
from cueline.testing.clock import NOON
from tests.client.test_runs import agent, record, registered
from tests.scripted import HELLO, scripted

TALKS = scripted('reply = [{ text = "Good evening." }, { text = "Good night." }]')
PAID = []
PAYS = 'reply = [{ calls = [{ name = "pay", arguments = {} }] }, { text = "Done." }]'


@cueline.tool(sensitive=True)
async def pay() -> str:
    """Pay."""
    PAID.append(1)
    return "paid"


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    """Have a master key of this test's own: proposals are sealed with it."""
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(tmp_path / "keys"))


@pytest.fixture
async def runtime(tmp_path):
    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as opened:
        yield opened


@pytest.fixture
async def one(runtime):
    session = await runtime.start(TALKS, "Go", id="one", open=True)
    await session.result()
    return session


async def length(runtime):
    return await runtime.log.store.last_position()


async def facts(runtime, stream="inbox-default/one", after=1):
    return [fact async for _, fact in runtime.log.journal().read(stream, after)]


# 002-029, 002-030
async def test_a_proposal_says_what_would_happen_and_records_nothing(runtime, one):
    before = await length(runtime)

    proposal = await runtime.propose("pause", {"session": "on"})

    assert "pause one: running calls finish, and no new call starts" == proposal.summary
    assert {"paused": (False, True)} == {
        name: (each.before, each.after) for name, each in proposal.changes.items()
    }
    assert ("one", (await runtime.show("one")).version) == (proposal.session, proposal.version)
    assert proposal.undoable
    assert before == await length(runtime)


# 002-033, 002-034
async def test_a_commit_is_carried_out_once(runtime, one):
    proposal = await runtime.propose("send", {"session": "one", "text": "And?"})

    first = await runtime.commit_proposal(proposal.id)
    assert "Good night." == (await one.result()).text
    again = await runtime.commit_proposal(proposal.id)
    await (await runtime.resume("one")).stop()
    last = await runtime.commit_proposal(proposal.id)

    assert [True, False, False] == [each.recorded for each in (first, again, last)]
    assert first.version == again.version == last.version
    assert ["And?"] == [each.text for each in await facts(runtime) if hasattr(each, "text")]


async def test_a_start_is_committed_once(runtime):
    await record(runtime, FleetTaken(epoch=1, up="up-1", at=NOON), registered(agent()))
    wanted = {"blueprint": "crawler", "goal": "Read the news"}
    proposal = await runtime.propose("start_session", wanted)
    none = await runtime.sessions()

    first = await runtime.commit_proposal(proposal.id)
    again = await runtime.commit_proposal(proposal.id)

    assert "start crawler (scripted/s): Read the news" == proposal.summary
    assert ((), None) == (none.rows, proposal.session)
    assert (first.session, True, False) == (again.session, first.recorded, again.recorded)
    assert [first.session] == [each.id for each in await runtime.runs(status="queued")]


async def test_each_kind_of_request_is_committed_once(runtime, one):
    wanted = {
        "pause": {},
        "resume": {},
        "set_model": {"model": "ollama/other"},
        "raise_limits": {"max_turns": 99},
        "stop": {"reason": "enough"},
    }
    for action, arguments in wanted.items():
        proposal = await runtime.propose(action, {"session": "one", **arguments})
        first = await runtime.commit_proposal(proposal.id)
        again = await runtime.commit_proposal(proposal.id)

        assert (first.version, True) == (again.version, first.recorded), action
        assert not again.recorded

    kinds = [each.type for each in await facts(runtime)]
    assert ["PauseAsked", "ResumeAsked", "ModelChangeAsked", "RaiseAsked", "StopAsked"] == kinds


# C11
async def test_a_proposal_expires_after_15_minutes(runtime, one):
    proposal = await runtime.propose("send", {"session": "one", "text": "And?"})
    done = await runtime.propose("send", {"session": "one", "text": "But?"})
    first = await runtime.commit_proposal(done.id)
    before = await length(runtime)
    runtime.log.clock.now, now = (
        lambda: now() + timedelta(minutes=15, seconds=1),
        (runtime.log.clock.now),
    )

    with pytest.raises(ProposalExpiredError, match="propose again") as refused:
        await runtime.commit_proposal(proposal.id)

    assert "proposal_expired" == refused.value.to_json()["code"]
    assert first.version == (await runtime.commit_proposal(done.id)).version
    assert before == await length(runtime)


async def test_a_proposal_is_stale_if_what_it_depends_on_has_changed(runtime, one):
    paused = await runtime.propose("pause", {"session": "one"})
    model = await runtime.propose("set_model", {"session": "one", "model": "ollama/other"})
    await one.pause()
    await runtime.switch_model("one", "ollama/third")

    for each in (paused, model):
        with pytest.raises(ProposalStaleError, match="propose again") as refused:
            await runtime.commit_proposal(each.id)
        assert "proposal_stale" == refused.value.to_json()["code"]


async def test_other_progress_of_the_session_does_not_matter(runtime, one):
    paused = await runtime.propose("pause", {"session": "one"})
    await one.send("And?")
    await one.result()

    assert (await runtime.commit_proposal(paused.id)).recorded


async def test_a_proposal_for_an_ended_session_is_stale(runtime, one):
    proposal = await runtime.propose("send", {"session": "one", "text": "And?"})
    await one.stop()
    await one.result()

    with pytest.raises(ProposalStaleError, match="not possible any more"):
        await runtime.commit_proposal(proposal.id)
    with pytest.raises(SessionFinishedError):
        await runtime.propose("send", {"session": "one", "text": "And?"})


async def test_a_pause_is_undone_by_another_proposal(runtime, one):
    paused = await runtime.propose("pause", {"session": "one"})
    with pytest.raises(NotUndoableError, match="was not committed"):
        await runtime.undo_proposal(paused.id)
    await runtime.commit_proposal(paused.id)

    undo = await runtime.undo_proposal(paused.id)
    await runtime.commit_proposal(undo.id)

    assert "resume" == undo.action
    assert ["PauseAsked", "ResumeAsked"] == [each.type for each in await facts(runtime)]
    with pytest.raises(RejectedError, match="nothing would change"):
        await runtime.undo_proposal(paused.id)


async def test_the_former_model_comes_back_with_its_parameters(runtime, one):
    before = own_model((await runtime.history("one")).state.agent)
    other = await runtime.propose("set_model", {"session": "one", "model": "ollama/other"})
    await runtime.commit_proposal(other.id)

    undo = await runtime.undo_proposal(other.id)
    await runtime.commit_proposal(undo.id)

    assert ["other", before] == [
        each.model if i else each.model.model for i, each in enumerate(await facts(runtime))
    ]


async def test_what_was_sent_or_stopped_is_not_undone(runtime, one):
    for action in ("send", "stop"):
        arguments = {"text": "And?"} if action == "send" else {}
        proposal = await runtime.propose(action, {"session": "one", **arguments})
        await runtime.commit_proposal(proposal.id)

        with pytest.raises(NotUndoableError, match="cannot be taken back") as refused:
            await runtime.undo_proposal(proposal.id)
        assert "not_undoable" == refused.value.to_json()["code"]


async def test_a_rejected_proposal_cannot_be_committed(runtime, one):
    proposal = await runtime.propose("send", {"session": "one", "text": "And?"})
    first = await runtime.reject_proposal(proposal.id)
    again = await runtime.reject_proposal(proposal.id)

    with pytest.raises(ProposalError, match="was rejected"):
        await runtime.commit_proposal(proposal.id)
    assert first == again
    assert [] == await facts(runtime)

    done = await runtime.propose("send", {"session": "one", "text": "But?"})
    await runtime.commit_proposal(done.id)
    with pytest.raises(RejectedError, match="it was committed"):
        await runtime.reject_proposal(done.id)


async def test_an_id_counts_only_whole_and_in_its_own_log(runtime, one, tmp_path):
    proposal = await runtime.propose("pause", {"session": "one"})
    changed = proposal.id[:40] + ("A" if proposal.id[40] != "A" else "B") + proposal.id[41:]

    async with cueline.open_runtime(tmp_path / "other.db", on="inline") as other:
        for client, each in [
            (other, proposal.id),
            (runtime, changed),
            (runtime, "é"),
            (runtime, ""),
        ]:
            with pytest.raises(ProposalError, match="propose again"):
                await client.commit_proposal(each)


async def test_another_process_can_commit_a_proposal(tmp_path):
    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as first:
        await (await first.start(HELLO, "Go", id="one", open=True)).result()
        proposal = await first.propose("pause", {"session": "one"})

    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as second:
        assert (await second.commit_proposal(proposal.id)).recorded


@pytest.mark.parametrize(
    ("action", "arguments", "told"),
    [
        ("dance", {}, "is none of"),
        ("send", {"session": "one"}, "text"),
        ("send", {"text": "And?"}, "session"),
        ("send", {"session": "one", "text": "And?", "turn": 3}, "only cueline sets it"),
        ("stop", {"session": "one", "by": "eve"}, "by"),
        ("start_session", {"goal": "Go"}, "blueprint"),
        ("raise_limits", {"session": "one", "max_turns": "many"}, "max_turns"),
    ],
)
async def test_a_wrong_request_is_refused_before_it_is_a_proposal(
    runtime, one, action, arguments, told
):
    before = await length(runtime)

    with pytest.raises(RejectedError, match=told):
        await runtime.propose(action, arguments)

    assert before == await length(runtime)


async def test_a_proposal_has_a_longest_id(runtime, one):
    long = Random(1).randbytes(20_000).hex()
    with pytest.raises(ConfigError, match="too long"):
        await runtime.propose("send", {"session": "one", "text": long})


# C17
async def test_a_program_does_not_allow_what_people_are_named_for(runtime):
    PAID.clear()
    rule = {"name": "people", "answer": "ask", "tools": ["pay"], "may_grant": ["*"]}
    policy = cueline.Policy(rules=[rule])
    named = await runtime.start(scripted(PAYS, pay, policy=policy), "Go", id="named")
    free = await runtime.start(scripted(PAYS, pay), "Go", id="free")
    await runtime.gather(named, free)
    asked = {each.session: each.id for each in await runtime.pending()}
    proposals = {
        name: await runtime.propose("approve", {"approval": each}) for name, each in asked.items()
    }

    with pytest.raises(RejectedError, match="a person does, by `cueline approve"):
        await commit(runtime, proposals["named"].id, channel="mcp")
    await commit(runtime, proposals["free"].id, channel="mcp")
    await free.result()

    assert "allow the call of free: pay" in proposals["free"].summary
    assert [1] == PAID
    (decided,) = await facts(runtime, "inbox-default/free")
    assert "mcp" == decided.channel
