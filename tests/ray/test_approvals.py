import json
import os
import signal

import pytest

from cueline.errors import RejectedError
from cueline.events.agent import Hook, Policy, Rule
from cueline.events.inbox import DecisionGiven
from cueline.events.session import ApprovalRequested, MessageReceived, MessageRefused

SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""
TWO = Rule(name="two", answer="ask", tools=("repeatable",), votes=2, may_grant=("ann", "ben"))


async def test_what_two_people_have_to_allow_waits_for_both_whoever_dies(on_cluster, tmp_path):
    # I9, I12, C15: the host and the gate die between the first vote and the second.
    told = tmp_path / "told"
    hook = Hook(on="asked", command=("cp", "/dev/stdin", str(told)))
    policy = Policy(rules=(TWO,), hooks=(hook,))
    async with on_cluster(SCRIPT, tools=["repeatable"], policy=policy) as world:
        world.let_go()
        asked = await world.fact(ApprovalRequested)
        await world.session.approve(asked, by="ann")
        await world.fact(MessageReceived)
        os.kill(await world.pid_of("gate"), signal.SIGKILL)
        await world.kill("host")  # after the gate, which may be its host's own and die with it
        with pytest.raises(RejectedError, match="eve may not allow it; ann or ben may"):
            await world.session.approve(asked, by="eve")
        # Nor by way of the inbox, where nobody looks before it is read.
        word = DecisionGiven(
            approval=asked.approval, digest=asked.digest, verdict="grant", by="eve", channel="cli"
        )
        await world.log.post(world.session.stream_name, word, None)
        assert "eve" == (await world.fact(MessageRefused)).refusal.by
        assert [] == world.journal_lines()
        await world.session.approve(asked, by="ben")

        assert "Done." == await world.result()
        assert (1, 1) == (len(world.journal_lines()), (await world.types())["ApprovalRequested"])
        assert ("two", 2) == (asked.rule, json.loads(told.read_text())["votes_needed"])
