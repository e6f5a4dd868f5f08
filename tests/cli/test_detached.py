"""What is recorded and left to others."""

import asyncio
from dataclasses import replace

import pytest

from cueline.actors.presence import presence_of
from cueline.cli.run_options import RunOptions
from cueline.cli.settings_context import SettingsContext
from cueline.events.journal import FactWrite
from cueline.events.log_url import LogUrl
from cueline.events.session import SessionContinued
from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import UpRecord

ONE = "session-default/one"


@pytest.fixture
def paused(asking):
    asking("pause", "one")
    return asking


def driven(shell):
    """Have this process drive session `one`."""

    async def take():
        async with open_log(shell.log) as log:
            head = await log.store.head(ONE)
            owner = replace(presence_of("inline"), incarnation=head.owner)
            await log.board.beat(owner)

    asyncio.run(take())


def test_what_goes_on_detached_is_told_as_it_stands(paused):
    told = paused.json("resume", "one", "--detach")

    assert ("one", "ResumeAsked", True, "nobody") == (
        told["session"],
        told["message"],
        told["recorded"],
        told["read_by"],
    )


@pytest.fixture
def kept_up(asking):
    """A log that an `up` of another version has."""
    keeper = presence_of("up")
    UpRecord(address="a:1", namespace="n", version="0.0.9", keeper=keeper).write(asking.log)
    return asking


def test_an_up_of_another_version_is_warned_of(kept_up):
    done = kept_up("run", "Hi", "--agent", kept_up.agent(kept_up.hello), "--detach")

    driving = {"detach": False, "attended": False, "address": None, "without_secrets": ()}
    shown = {"as_json": False, "json_stream": False, "plain": False, "hide_thinking": False}
    options = RunOptions(
        log=LogUrl.of(kept_up.log), on="auto", context=SettingsContext(), **driving, **shown
    )

    warning = "the `cueline up` of this log is cueline 0.0.9, and this is "
    assert (0, True) == (done.exit_code, warning in done.stderr)
    assert ("up", True) == (options.place, "cueline up" in options.takes_long)


def test_beside_an_up_no_other_is_advised(kept_up, asking):
    async def abandon():
        async with open_log(asking.log) as log:
            write = FactWrite(
                stream=ONE,
                steps=[[SessionContinued(by="deadline", at=log.clock.now())]],
                expected_version=(head := await log.store.head(ONE)).version,
                epoch=head.epoch,
            )
            await log.journal().append([write], None)

    asyncio.run(abandon())

    said = kept_up("status").stdout

    assert "and nobody drives it: `cueline resume` goes on with it" in said


def test_whoever_drives_a_session_takes_up_what_is_said_detached(paused):
    driven(paused)

    done = paused("resume", "one", "--detach")

    assert (0, "one\n", "") == (done.exit_code, done.stdout, done.stderr)
