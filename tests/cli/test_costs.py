"""`cueline costs`, and what the other commands show of cost."""

from decimal import Decimal

import pytest

PRICES = '[prices."scripted/*"]\ninput = "100"\noutput = "1000"\n'


def pay(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",), more=PRICES)
    for name in ("one", "two"):
        done = shell("run", "Look", "--agent", agent, "--inline", "--id", name)
        assert done.exit_code == 0, done.output


@pytest.fixture
def paid(begin):
    """A shell whose log holds two sessions that cost 0.055 and 0.0275 dollars."""
    return begin(pay)


# 000-021: the cost line of each turn; 000-022: the summary.
def test_a_run_shows_what_each_turn_costs_and_the_total(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",), more=PRICES)

    done = shell("run", "Look", "--agent", agent, "--inline")

    assert "100 in + 20 out tokens · $0.0300, $0.0300 so far" in done.stdout
    assert "150 in + 10 out tokens · $0.0250, $0.0550 so far" in done.stdout
    assert "250 in + 30 out tokens · $0.0550" in done.stdout.splitlines()[-1]


def test_costs_are_a_table_with_bars_and_a_total(paid):
    head, one, two, total = paid("costs").stdout.splitlines()

    assert head.split() == ["SESSION", "SESSIONS", "ANSWERS", "SENT", "CACHED", "OUTPUT", "COST"]
    assert one.split() == ["one", "1", "2", "250", "0", "30", "$0.0550", "█" * 24]
    assert two.startswith("two")
    assert total.split() == ["total", "2", "4", "500", "0", "60", "$0.1100"]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("session", ["one", "two"]),
        ("agent", ["clerk"]),
        ("tree", ["one", "two"]),
    ],
)
def test_costs_are_exact_in_json(by, names, paid):
    told = paid.json("costs", "--by", by)

    assert names == [row["name"] for row in told["rows"]]
    assert ("0.110", 4) == (told["total"]["cost"].rstrip("0") + "0", told["total"]["calls"])


def test_costs_of_one_session_by_day_and_model(paid):
    (day,) = paid.json("costs", "--by", "day", "--session", "one")["rows"]
    (model,) = paid.json("costs", "--by", "model", "--session", "one")["rows"]

    assert day["cost"] == model["cost"]
    assert "scripted/script.toml" == model["name"]
    assert [] == paid.json("costs", "--since", "2999-01-01")["rows"]


def test_a_lost_answer_and_one_that_came_are_of_one_model(shell):
    """And nobody is told in which folder its script was."""
    failing = '[[reply]]\nturn = 1\nattempt = 1\nfail = { kind = "overloaded" }\n'
    quick = "[retry]\nbase_seconds = 0.01\n"
    agent = shell.agent(failing + shell.hello.replace("]]", "]]\nturn = 1"), more=quick)
    shell("run", "Look", "--agent", agent, "--inline")

    (model,) = shell.json("costs", "--by", "model")["rows"]

    assert ("scripted/script.toml", 1) == (model["name"], model["calls"])


SILENT = """
[[reply]]
text = "I look."
calls = [{ name = "list_files", arguments = {} }]
usage = { input = 0, output = 0 }

[[reply]]
turn = 2
attempt = 1
delay_seconds = 120
text = "Never."

[[reply]]
turn = 2
text = "Done."
usage = { input = 10, output = 10 }
"""


def test_what_nobody_knows_of_is_estimated_without_a_limit_too(shell):
    """A reply that tells no use, and a call that was lost with its process."""
    agent = shell.agent(SILENT, tools=("list_files",), more=PRICES)
    process = shell.start("run", "Look", "--agent", agent, "--inline", "--id", "one")
    shell.wait_for("one", "ModelStarted", times=2)
    process.kill()
    process.wait()
    (silent,) = shell.json("costs")["rows"]

    done = shell("resume", "one", "--inline")

    (both,) = shell.json("costs")["rows"]
    assert 0 == done.exit_code, done.output
    assert Decimal(8) < Decimal(silent["cost"]) == Decimal(silent["estimated_cost"])
    known = Decimal("0.011")
    assert Decimal(both["cost"]) == Decimal(both["estimated_cost"]) + known
    assert 2 * Decimal(silent["cost"]) < Decimal(both["estimated_cost"])
    assert f"~${Decimal(both['cost']):.2f}" in shell("costs").stdout.split()
    told = shell("show", "one").stdout
    assert f"turn 1 · its use was not told · ~${Decimal(silent['cost']):.2f}" in told
    assert "1 lost attempt (~$8." in told


def test_what_does_not_fit_is_summed_up(paid):
    assert "1 more row of $0.0550; --limit shows them" in paid("costs", "--limit", "1").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--by", "moon"], "'moon' is not one of"),
        (["--since", "yesterday"], "'yesterday' is no day like 2026-01-31"),
        (["--until", "2026-13-01"], "'2026-13-01' is no day like 2026-01-31"),
        (["--session", "nobody"], "there is no such session"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, why, paid):
    done = paid("costs", *words)

    assert done.exit_code == 2
    assert why in done.stderr


def test_nothing_was_spent(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach")

    assert "nothing was spent in .cueline/log.db\n" == shell("costs").stdout
    filtered = shell("costs", "--since", "2026-01-01").stdout
    assert "nothing that fits was spent in .cueline/log.db\n" == filtered


# C26, D34: a limit of money that could not be kept is refused before anything is recorded.
def test_a_model_of_unknown_price_does_not_start_under_a_limit_of_money(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-nothing")
    (shell.folder / "agent.toml").write_text(
        'name = "clerk"\nprovider = "anthropic"\nmodel = "claude-none-9"\n'
    )

    done = shell("run", "Hi", "--agent", "agent.toml", "--max-cost", "1", "--detach")

    assert done.exit_code == 2
    assert 'add [prices."anthropic/claude-none-9"]' in done.stderr
    assert not shell.log.exists()
