"""What a user wishes of a session in Python, and what is refused at once."""

import pytest

import cueline
from cueline.config.environment import user_name
from cueline.errors import (
    ConfigError,
    InvalidNameError,
    NotPendingError,
    RejectedError,
    SessionFinishedError,
    UnknownSessionError,
)
from cueline.testing.wait import await_until
from tests.scripted import HELD, HELLO, ask, holder, scripted


# I7: what is sent again because nobody knows whether it arrived is there once.
async def test_what_is_said_twice_with_a_key_is_said_once(runtime, log):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one", open=True)
        await session.result()
        for _ in range(2):
            await session.send("And?", key="start")

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked", "MessageSent"] == inbox


async def test_a_session_is_found_by_the_beginning_of_its_id_at_its_first_use(runtime):
    async with runtime() as here:
        await here.start(HELLO, "Go", id="first", open=True)
        named, unknown = here.session("fir"), here.session("second")

        assert "idle" == (await named.result()).status
        assert "first" == named.id
        assert "first" == (await here.session("fi").pause()).session
        with pytest.raises(UnknownSessionError, match="second: there is no such session"):
            await unknown.send("And?")


async def test_a_wish_may_name_its_session_by_keyword(runtime):
    async with runtime() as here:
        await here.start(HELLO, "Go", id="one", open=True)

        assert (await here.send(session="one", text="And?")).recorded


async def test_a_session_that_has_ended_takes_no_wishes_but_to_be_stopped(runtime, log):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one")
        await session.result()

        for options in (session.pause, session.resume, lambda: session.raise_limits(max_turns=99)):
            with pytest.raises(SessionFinishedError):
                await options()
        await session.stop()

    inbox = [fact.type async for _, fact in log.journal().read("inbox-default/one")]
    assert ["StartAsked"] == inbox


async def test_a_session_that_nobody_drives_has_ended_when_it_was_stopped(runtime, log):
    await ask(log)
    async with runtime() as here:
        session = here.session("one")
        await session.stop("Enough.")
        assert "SessionStopped" == [fact.type async for _, fact in session.events()][-1]
        await session.stop("I said enough.")

    asked = [fact async for _, fact in log.journal().read("inbox-default/one")][1:]
    assert ["Enough."] == [each.reason for each in asked]


async def test_a_session_that_stops_takes_no_messages(runtime):
    async with runtime() as here:
        session = await here.start(holder(), "Go", id="one")
        await await_until(lambda: HELD)
        await session.stop()

        with pytest.raises(RejectedError, match="one: it was asked to stop"):
            await session.send("Wait")


# I13: what is recorded has to be read again, also in a fork.
@pytest.mark.parametrize("limit", ["max_active_seconds", "max_wall_seconds"])
@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e300])
async def test_a_time_that_no_calendar_holds_is_no_limit(runtime, log, limit, seconds):
    await ask(log)
    async with runtime() as here:
        with pytest.raises(ConfigError, match=limit):
            await here.session("one").raise_limits(**{limit: seconds})


async def test_a_limit_that_cannot_be_raised_is_refused_at_once(runtime):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one", open=True)
        await session.result()

        with pytest.raises(RejectedError, match="no max_cost: a limit can be raised, not"):
            await session.raise_limits(max_cost="1.00")
        with pytest.raises(RejectedError, match="max_turns is 50 already"):
            await session.raise_limits(max_turns=2)


async def test_a_raise_is_compared_with_one_that_is_not_read_yet(runtime, log):
    await ask(log)
    async with runtime() as here:
        session = here.session("one")
        await session.raise_limits(max_turns=100)

        with pytest.raises(RejectedError, match=r"100 already.* \(asked for before"):
            await session.raise_limits(max_turns=90)


@cueline.tool(sensitive=True, paths=["path"])
async def keep(path: str = "a.md") -> str:
    """Keep a file."""
    return path


async def test_all_that_goes_with_a_grant_is_said(runtime, log):
    script = 'reply = [{ calls = [{ name = "keep", arguments = {} }] }]'
    async with runtime() as here:
        session = await here.start(scripted(script, keep), "Go", id="one")
        (asked,) = [f async for _, f in session.events() if f.type == "ApprovalRequested"]
        await session.approve(asked, "ann", "Once more", edit={}, always=["*.md"])

    *_, (_, given) = [each async for each in log.journal().read("inbox-default/one")]
    assert ("grant", "ann", "Once more", "api") == (
        given.verdict,
        given.by,
        given.note,
        given.channel,
    )
    assert ({}, ("*.md",), asked.digest) == (given.edit, given.always, given.digest)


# I9: its letters are globs, too, and one of them is `*`.
async def test_one_glob_that_is_no_list_allows_nothing(runtime, log):
    async with runtime() as here:
        session = await here.start(holder(approval="all_writes"), "Go", id="one")
        (asked,) = [f async for _, f in session.events() if f.type == "ApprovalRequested"]
        with pytest.raises(ConfigError, match="always"):
            await session.approve(asked, always="notes/**")

    assert ["StartAsked"] == [f.type async for _, f in log.journal().read("inbox-default/one")]


async def test_a_question_that_was_answered_takes_no_other_answer(runtime):
    sensitive = holder(approval="all_writes")
    async with runtime() as here:
        session = await here.start(sensitive, "Go", id="one", open=True)
        (asked,) = [f async for _, f in session.events() if f.type == "ApprovalRequested"]
        await session.deny(asked)
        await session.result()

        with pytest.raises(NotPendingError, match=r"one\.1\.0\.1: one does not wait for it \(any"):
            await session.approve(asked)


async def test_the_question_of_another_session_is_no_question_of_this_one(runtime):
    async with runtime() as here:
        session = await here.start(holder(approval="all_writes"), "Go", id="one")
        (asked,) = [f async for _, f in session.events() if f.type == "ApprovalRequested"]
        other = await here.start(HELLO, "Go", id="two", open=True)

        with pytest.raises(NotPendingError, match=r"one\.1\.0\.1: two does not wait for it"):
            await other.approve(asked)


async def test_an_empty_id_is_no_id(runtime):
    async with runtime() as here:
        with pytest.raises(InvalidNameError):
            await here.start(HELLO, "Go", id="")


@cueline.tool(sensitive=True)
async def post(words: str) -> str:
    """Post a notice."""
    return words


async def asked_to_post(runtime, **policy):
    script = 'reply = [{ calls = [{ name = "post", arguments = { words = "Hi" } }] }]'
    session = await runtime.start(scripted(script, post, policy=policy), "Go", id="one")
    (asked,) = [f async for _, f in session.events() if f.type == "ApprovalRequested"]
    return session, asked


# C17: whoever may not allow it learns so from the one that they said it to.
async def test_who_may_not_allow_a_call_is_told_at_once(runtime, log):
    rule = {"name": "two", "answer": "ask", "may_grant": ["ann", "ben"], "votes": 2}
    async with runtime() as here:
        session, asked = await asked_to_post(here, rules=[rule])
        with pytest.raises(RejectedError, match="eve may not allow it; ann or ben may"):
            await session.approve(asked, by="eve")
        with pytest.raises(RejectedError, match="it takes 2 people, so one alone can neither"):
            await session.approve(asked, by="ann", edit={"words": "Bye"})

    assert ["StartAsked"] == [f.type async for _, f in log.journal().read("inbox-default/one")]


# C17: in Python, too, somebody wanted the session.
async def test_whoever_started_a_session_may_be_excluded(runtime):
    rule = {"name": "other", "answer": "ask", "exclude_requester": True}
    async with runtime() as here:
        session, asked = await asked_to_post(here, rules=[rule])
        with pytest.raises(RejectedError, match="asked for the session, and may not allow it"):
            await session.approve(asked)
        await session.approve(asked, by="somebody else")


# C17: as with `cueline approve` and `cueline deny`.
@pytest.mark.parametrize("decide", [cueline.Session.approve, cueline.Session.deny])
async def test_who_decides_without_a_name_is_the_login_of_the_process(runtime, log, decide):
    async with runtime() as here:
        session, asked = await asked_to_post(here)
        await decide(session, asked)

    inbox = [pair async for pair in log.journal().read("inbox-default/one")]
    assert (f"user:{user_name()}", user_name()) == (inbox[-1][0].actor, inbox[-1][1].by)


@pytest.mark.parametrize(
    ("edit", "why"),
    [({"words": 1}, 'words: 1 is not of type "string"'), ({"words": "x"}, "a rule denies it")],
)
async def test_an_edit_that_cannot_run_is_refused_at_once(runtime, log, edit, why):
    rule = {"name": "no x", "answer": "deny", "commands": ["x"]}
    async with runtime() as here:
        session, asked = await asked_to_post(here, rules=[rule])
        with pytest.raises(ConfigError, match=why):
            await session.approve(asked, by="ann", edit=edit)

    assert ["StartAsked"] == [f.type async for _, f in log.journal().read("inbox-default/one")]


# It was recorded as allowed always, and the very same call was asked about again.
async def test_nothing_is_always_allowed_in_a_folder_of_a_tool_without_paths(runtime, log):
    async with runtime() as here:
        session, asked = await asked_to_post(here)
        with pytest.raises(ConfigError, match="always: post names no paths"):
            await session.approve(asked, by="ann", always=["notes/**"])

    assert ["StartAsked"] == [f.type async for _, f in log.journal().read("inbox-default/one")]


async def test_always_without_a_place_is_for_the_same_call_as_at_a_shell(runtime, log):
    async with runtime() as here:
        session, asked = await asked_to_post(here)
        await session.approve(asked, by="ann", always=[])

    *_, (_, given) = [each async for each in log.journal().read("inbox-default/one")]
    assert len(given.always) == 1


# I14: the deadline is the log's, whether or not anything has told the session of it yet.
async def test_a_decision_that_comes_too_late_is_told_so(runtime, log, clock):
    async with runtime() as here:
        _, asked = await asked_to_post(here)
    await clock.advance(2 * 86_400)
    async with runtime() as here:
        with pytest.raises(NotPendingError, match="its deadline passed at"):
            await here.session("one").approve(asked, by="ann")


@pytest.mark.parametrize(
    ("folder", "why"),
    [(None, "no workspace for read_file;"), ("nowhere", "is not a folder; make it")],
)
async def test_an_agent_whose_tools_have_no_folder_to_work_in_does_not_start(
    runtime, tmp_path, folder, why
):
    workspace = folder and tmp_path / folder
    agent = scripted("reply = [{ text = 'Hello.' }]", "read_file", workspace=workspace)
    async with runtime() as here:
        with pytest.raises(ConfigError, match=why):
            await here.start(agent, "Go", id="one")
        with pytest.raises(UnknownSessionError):
            await here.session("one").result()


async def test_a_breaker_that_nobody_met_is_not_reset_in_python_either(runtime):
    async with runtime() as here:
        with pytest.raises(RejectedError, match="fake: there is no such breaker"):
            await here.reset_breaker("fake")
