"""Calls whose changes are held: the question comes after the run, with what it would change."""

import pytest

from cueline.deciders.session import Status, due
from cueline.deciders.session.due import AskApproval, RunTool
from cueline.deciders.session.permission import allowing_rule
from cueline.deciders.standing_grant import StandingGrant
from cueline.events.agent import Policy, Workspace
from cueline.events.session import ApprovalResolved, ModelRequested, ToolSkipped
from cueline.testing.given import given
from tests.deciders.owed import runs
from tests.session_example import (
    AGENT,
    HOLDS,
    broken,
    question,
    returned,
    running,
    tool_asking,
    up_to_reply,
)


def started(*more, **policy):
    spec = AGENT.model_copy(
        update={
            "tools": (*AGENT.tools, HOLDS),
            "policy": Policy(**policy),
            "workspace": Workspace(machine="here", path="/w"),
        }
    )
    return given().when(*up_to_reply("keep", *more, spec=spec))


def held(*more, paths=("a.txt",), **policy):
    """Return the past of a session whose call holds changes of *paths*."""
    asking = tool_asking("1.0", state="sealed", paths=paths)
    return started(*more, **policy).when(running("1.0", "keep"), asking)


def granted(**more):
    resolved = ApprovalResolved(approval="1.1.0.1", verdict="granted", by="ada", **more)
    return held().when(asked(), resolved)


def asked(past=None):
    digest = (past or held()).state.call("1.0").digest
    return question("1.0", "1.1.0.1", name="keep").model_copy(update={"digest": digest})


def test_it_runs_before_anybody_is_asked():
    past = started()

    (run,) = due(past.state)
    assert isinstance(run, RunTool)
    assert "held" == allowing_rule(past.state.call("1.0"))


def test_the_question_is_that_of_the_gate_about_the_exact_call():
    past = held()

    (ask,) = due(past.state)
    call = past.state.call("1.0")
    assert isinstance(ask, AskApproval)
    assert ("may_it_run", call.digest) == (ask.question, ask.digest)
    past.when(asked())
    assert Status.WAITING is past.state.status
    assert [] == runs(past)


def test_a_yes_runs_it_again_with_what_it_held():
    past = granted()

    (run,) = due(past.state)
    assert isinstance(run, RunTool)
    call = past.state.call("1.0")
    assert (2, "yes", "sealed") == (run.attempt, call.input.answer, call.input.state)


def test_a_call_that_changes_nothing_asks_nobody():
    past = started().when(running("1.0", "keep"), returned("1.0"))

    assert isinstance(past.facts[-1], ModelRequested)


def test_a_no_ends_the_call():
    past = held().when(asked())
    past.when(ApprovalResolved(approval="1.1.0.1", verdict="denied", by="ada"))

    past.then(ApprovalResolved, ToolSkipped, ModelRequested)


@pytest.mark.parametrize("past", [started, granted], ids=["before the yes", "while it is written"])
def test_a_call_whose_runner_dies_is_tried_again_and_never_in_doubt(past):
    attempt = 1 if past is started else 2
    lost = broken("1.0", "lost", attempt=attempt)

    after = past().when(running("1.0", "keep", attempt=attempt), lost)

    (run,) = due(after.state)
    assert (RunTool, attempt + 1) == (type(run), run.attempt)


def test_an_allowed_call_is_written_without_a_question():
    (run,) = due(held(approval="off").state)

    assert isinstance(run, RunTool)


# A planted git hook or `cueline.toml` would run at the next start.
@pytest.mark.parametrize(
    ("path", "asks"),
    [
        ("src/a.py", False),
        (".git/hooks/pre-commit", True),
        (".git/config", True),
        (".git/modules/x/hooks/post-checkout", True),
        ("cueline.toml", True),
        ("deep/.envrc", True),
        (".git/index", False),
        (".git/objects/ab/cdef", False),
        (".git/refs/heads/config", False),
        (".git/logs", False),
        (".git/HEAD", False),
        (".git/objects", False),
        (".git", True),
        ("sub/.git/objects/x", True),
    ],
)
def test_an_allowed_call_asks_if_it_would_change_what_a_later_start_runs(path, asks):
    past = held(approval="off", paths=("a.txt", path))

    (effect,) = due(past.state)

    assert asks == isinstance(effect, AskApproval)
    assert asks == (past.state.call("1.0").judged.rule == "read at a start")


def test_edited_arguments_run_as_another_command_that_is_held_again():
    past = granted(edit={"command": "ls"}, digest="d")

    (run,) = due(past.state)
    call = past.state.call("1.0")
    assert isinstance(run, RunTool)
    assert (None, True) == (call.input, call.runs_held)


def test_the_next_call_of_the_turn_waits_for_it():
    past = held("keep").when(asked())

    assert [] == runs(past)
    assert Status.WAITING is past.state.status
    past.when(ApprovalResolved(approval="1.1.0.1", verdict="granted", by="ada"))
    past.when(running("1.0", "keep", attempt=2), returned("1.0", attempt=2))
    assert ["1.1"] == runs(past)


def test_a_standing_grant_allows_the_changes_too():
    past = granted(always=())

    grant = past.state.setup.standing[0]
    assert StandingGrant(HOLDS.digest, (), "ada", grant.demand) == grant
