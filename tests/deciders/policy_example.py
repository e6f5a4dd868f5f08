"""Tools, and the rules that judge a call of one."""

from cueline.deciders.policy import judge
from cueline.events.agent import Policy, Rule, Workspace
from tests.session_example import tool

PLACE = Workspace(machine="m", path="/srv/work")
WRITE = tool("write", "idempotent").model_copy(update={"paths": ("path",)})
SHELL = tool("shell")


def spec(name="work", **declared):
    return tool(name).model_copy(update=declared)


def rule(answer="deny", name="mine", **match):
    return Rule(name=name, answer=answer, **match)


def judged(*rules, of=SHELL, profiles=("off",), standing=(), **arguments):
    policy = Policy(approval=profiles, rules=rules)
    return judge(policy, of, arguments, workspace=PLACE, standing=standing)


def answer(*rules, **given):
    return judged(*rules, **given).answer
