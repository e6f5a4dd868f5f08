"""What is erased is gone in every kind of log, and what it cost stays."""

import pytest

from cueline import Agent, open_runtime
from cueline.client.retention import erase
from cueline.client.verify import verify_log
from cueline.errors import RejectedError

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

        receipt = await erase(runtime, ["one"], reason="she asked")

        assert ["two", "one"] == [each.session for each in receipt.sessions]
        assert before == await runtime.costs()
        assert [] == list(await runtime.sessions())
        assert () == (await verify_log(runtime.log)).bad
        with pytest.raises(RejectedError, match=r"its content was erased on 20.*: she asked"):
            await runtime.history("one")
        payloads = [event.payload async for event in runtime.log.store.read_all()]

    assert not any(b"planted-words" in payload for payload in payloads if payload)
