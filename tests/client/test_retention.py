"""What is erased is gone in every kind of log, and what it cost stays."""

from dataclasses import replace
from datetime import timedelta

import pytest

import cueline
from cueline import Agent, open_runtime
from cueline.client.archive_file import ArchiveFile
from cueline.client.client import Client
from cueline.client.retention import clean_up, erase
from cueline.client.tokens import issue_token
from cueline.client.verify import verify_log
from cueline.errors import MissingBlobError, RejectedError
from cueline.events.journal import FactWrite
from cueline.events.session import OutcomeCameLate
from cueline.runtime.place import Place
from cueline.testing.clock import FakeClock
from tests.gateway.conftest import served

ONE = "session-default/one"
SAYS = '[[reply]]\ntext = "planted-words"\n'


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("one_server").empty_log("erased"))


async def test_erased_content_is_gone_and_its_cost_stays(url):
    agent = Agent(name="a", provider="scripted", model="m", parameters={"script": SAYS})
    async with open_runtime(url, on="inline") as runtime:
        await (await runtime.start(agent, "planted-words", id="one")).result()
        fork = await runtime.fork("one", at=1, id="two")
        await fork.result()
        before = await runtime.costs()
        assert (await runtime.audit(text="planted-words")).rows

        receipt = await erase(runtime, ["one"], reason="she asked")

        assert ["two", "one"] == [each.session for each in receipt.sessions]
        assert before == await runtime.costs()
        assert [] == list(await runtime.sessions())
        assert [] == list(await runtime.audit(text="planted-words"))
        assert () == (await verify_log(runtime.log)).bad
        with pytest.raises(RejectedError, match=r"its content was erased on 20.*: she asked"):
            await runtime.history("one")
        payloads = [event.payload async for event in runtime.log.store.read_all()]

    assert not any(b"planted-words" in payload for payload in payloads if payload)


class GoesOn:
    """A store in which the owner of a session records a fact just before it loses it."""

    def __init__(self, log):
        self._log = log

    def __getattr__(self, name):
        return getattr(self._log.store, name)

    async def acquire(self, stream, owner, seen_epoch):
        head = await self._log.store.head(ONE)
        late = OutcomeCameLate(effect="1.0", attempt=1, outcome="ToolReturned")
        write = FactWrite(ONE, [[late]], head.version, epoch=head.epoch)
        await self._log.journal().append([write], key="late")
        return await self._log.store.acquire(stream, owner, seen_epoch)


async def test_a_session_that_went_on_after_it_was_looked_at_stays(tmp_path):
    agent = Agent(name="a", provider="scripted", model="m", parameters={"script": SAYS})
    async with open_runtime(tmp_path / "log.db", on="inline") as runtime:
        await (await runtime.start(agent, "planted-words", id="one")).result()
        there = runtime.log
        runtime.log = replace(there, store=GoesOn(there))
        with pytest.raises(RejectedError, match="one: it went on meanwhile; try again"):
            await erase(runtime, ["one"], reason="she asked")
        runtime.log = there
        payloads = [event.payload async for event in there.store.read(ONE)]

        receipt = await erase(runtime, ["one"], reason="she asked")

    assert all(payloads)
    assert ["one"] == [each.session for each in receipt.sessions]


# C38
def test_an_archive_has_its_name_once_it_is_whole(tmp_path):
    path = tmp_path / "one.jsonl.gz"
    path.write_bytes(b"of an earlier try")

    with ArchiveFile(path) as archive:
        archive.add(b"{}" * 1_000_000)
        assert b"of an earlier try" == path.read_bytes()

    assert [path] == list(tmp_path.iterdir())
    assert b"of an earlier try" == path.read_bytes()


async def test_values_that_no_event_names_are_removed_once_they_are_a_day_old(url):
    agent = Agent(name="a", provider="scripted", model="m", parameters={"script": SAYS})
    async with open_runtime(url, on="inline") as runtime:
        await (await runtime.start(agent, "planted-words " * 2000, id="one")).result()
        store, now = runtime.log.store, runtime.log.clock.now()
        left = await store.put_blob(b"of a process that died before its event")
        long_ago, day = now - timedelta(days=1), now + timedelta(days=2)

        young = await clean_up(runtime, long_ago, archive=None)
        tried = await clean_up(at(runtime, day), long_ago, archive=None, dry_run=True)
        removed = await clean_up(at(runtime, day), long_ago, archive=None)

        assert [0, 0, 1] == [each.blobs for each in (young, tried, removed)]
        with pytest.raises(MissingBlobError):
            await store.get_blob(left)
        assert () == (await verify_log(runtime.log)).bad
        assert "planted-words" in str(await runtime.show("one"))


def at(runtime, now):
    """Return a client that thinks that it is *now*."""
    return Client(replace(runtime.log, clock=FakeClock(now)), Place(runtime.log.url))


async def test_content_is_erased_from_afar_with_the_name_of_the_token(url, tmp_path, monkeypatch):
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(tmp_path / "keys"))
    agent = Agent(name="a", provider="scripted", model="m", parameters={"script": SAYS})
    async with served(url) as (runtime, http):
        await (await runtime.start(agent, "planted-words", id="one")).result()
        token = (await issue_token(runtime, "ada", scopes=["admin"])).text
        async with cueline.connect(str(http.base_url), token=token) as far:
            with pytest.raises(RejectedError, match="it has to run where the log is; `cueline era"):
                await clean_up(far, runtime.log.clock.now(), archive=None)
            receipt = await erase(far, ["one"], reason="she asked")
            with pytest.raises(RejectedError, match=r"erased on 20.* by ada: she asked"):
                await far.history("one")

        assert [("one", True)] == [(each.session, each.events > 3) for each in receipt.sessions]
        payloads = [event.payload async for event in runtime.log.store.read_all()]
    assert not any(b"planted-words" in payload for payload in payloads if payload)
