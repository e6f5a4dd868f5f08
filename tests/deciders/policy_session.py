"""A session whose first call a policy has a say in."""

from cueline.events.agent import Policy, Rule
from cueline.events.session import (
    ApprovalResolved,
)
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    question,
    up_to_reply,
)

ASKED = question("1.0", "1.1.0.1")


def policy(**changes):
    return AGENT.model_copy(update={"policy": Policy(**changes)})


def rule(answer, name="mine", **match):
    return Rule(name=name, answer=answer, **match)


def asked(*tools, **changes):
    return given().when(*up_to_reply("delete", *tools, spec=policy(**changes)), ASKED)


def resolved(verdict, by="ada", approval="1.1.0.1", **more):
    return ApprovalResolved(approval=approval, verdict=verdict, by=by, **more)
