"""A rule that raises where sessions are driven on Ray."""

import pytest

from tests.broken_cueline import BrokenShell


@pytest.mark.parametrize(
    ("file", "function", "when"),
    [
        ("deciders/session/derived_events.py", "_after_turn", "state.turn.calls"),
        pytest.param(
            "deciders/session/due.py",
            "due",
            "state.turn.model is not None and state.turn.model.effect == '2.m'",
            marks=pytest.mark.long,
        ),
        pytest.param("deciders/session/call.py", "call_closed", "True", marks=pytest.mark.long),
    ],
)
def test_a_rule_that_raises_pauses_a_session_on_ray(tmp_path, file, function, when):
    broken = BrokenShell(tmp_path)
    broken.break_(file, function, when)
    done = broken.run("--ray", "--max-cost", "1")

    assert (3, True) == (done.returncode, "a rule of cueline failed" in done.stdout), done
    assert "paused" == broken.row()["status"]
    assert "paid\n" == broken.book.read_text()

    broken.mend()
    done = broken("resume", "one", "--inline")

    assert (0, "paid\n") == (done.returncode, broken.book.read_text()), done


# What the first reply cost is booked while the call of the tool runs: the pause may come before
# the call begins, and in the middle of it. So a person may be asked what became of it.
@pytest.mark.long
def test_a_cost_that_cannot_be_booked_pauses_a_session_that_then_pays_once(tmp_path):
    broken = BrokenShell(tmp_path)
    broken.break_("deciders/budget/decide.py", "decide", "not isinstance(command, Reserve)")
    done = broken.run("--ray", "--max-cost", "1")

    assert (3, True) == (done.returncode, "a rule of cueline failed" in done.stdout), done
    assert "paused" == broken.row()["status"]

    broken.mend()
    done = broken("resume", "one", "--inline")
    if done.returncode == 3:
        answer = "--happened" if broken.book.exists() else "--run-again"
        assert 0 == broken("approve", "one.1.0.1", answer).returncode
        done = broken("resume", "one", "--inline")

    assert (0, "paid\n") == (done.returncode, broken.book.read_text()), done
