"""Calls that ask a person: the answer comes from another shell, after the process has died."""

import json
import sys
from pathlib import Path

import pytest

from cueline.cli.failure import Exit
from cueline.testing.wait import wait_until
from tests.cli.test_mcp_servers import ENDS, calls

SERVER = Path(__file__).parents[1] / "mcp_client" / "asking_server.py"
ASKS = calls("ask_user", question="Which colour?", choices=["red", "blue"]) + ENDS
KEY = "k" * 32


@pytest.fixture(autouse=True)
def keys(shell, monkeypatch):
    """Have a master key of this test's own, for the state of servers."""
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(shell.folder / "keys"))


def bank(shell, *key):
    """Return an agent with the tool `bank__refund`, which asks before it pays."""
    (shell.folder / "question.txt").write_text("Really give {amount} back?")
    command = [sys.executable, str(SERVER), "ledger.txt", "question.txt", *key]
    server = f"[mcp.bank]\ncommand = {json.dumps(command)}\nask = []\n"
    agent = shell.agent(calls("bank__refund", amount=120) + ENDS, more=server)
    (shell.folder / "work" / "question.txt").write_text("Really give {amount} back?")
    return agent


def ledger(shell):
    path = shell.folder / "work" / "ledger.txt"
    return path.read_text().splitlines() if path.exists() else []


def asked(shell):
    listed = shell("pending", "--json")  # fails while another process makes the log
    return [row["id"] for row in json.loads(listed.output)] if listed.exit_code == 0 else []


def test_an_agent_asks_and_goes_on_with_the_answer(shell):
    waits = shell("run", "--agent", shell.agent(ASKS, tools=("ask_user",)), "--id", "one", "Go.")
    assert waits.exit_code == Exit.WAITING
    assert "Which colour?" in waits.output
    assert "answer: 1. red, 2. blue" in waits.output
    assert "what is the answer?" in shell("pending").output
    for given, why in (("green", '"green" is not one of'), ("a=b", "is not one of")):
        refused = shell("approve", "one.1.0.1", "--answer", given)
        assert refused.exit_code == Exit.REFUSED
        assert why in refused.output
    assert "answered" in shell("approve", "one.1.0.1", "--answer", "2").output
    ended = shell("resume", "one", "--inline")
    assert 0 == ended.exit_code, ended.output
    assert "    blue\n" in ended.output
    assert 1 == shell.types("one").count("ToolAsked")


def test_a_question_without_an_answer_is_not_granted(shell):
    shell("run", "--agent", shell.agent(ASKS, tools=("ask_user",)), "--id", "one", "Go.")
    refused = shell("approve", "one.1.0.1")
    assert refused.exit_code == Exit.REFUSED
    assert "cueline approve one.1.0.1 --answer" in refused.output
    assert ["one.1.0.1"] == asked(shell)


def test_a_refusal_is_told_to_the_agent(shell):
    shell("run", "--agent", shell.agent(ASKS, tools=("ask_user",)), "--id", "one", "Go.")
    shell("deny", "one.1.0.1", "--reason", "none of them")
    ended = shell("resume", "one", "--inline")
    assert 0 == ended.exit_code, ended.output
    assert "Action rejected by human operator: none of them" in ended.output


def test_a_call_that_asks_nothing_takes_no_answer(shell):
    shell("run", "--agent", shell.agent(shell.deletes, tools=("delete_file",)), "--id", "o", "Go.")
    refused = shell("approve", asked(shell)[0], "--answer", "yes")
    assert refused.exit_code == Exit.REFUSED
    assert "leave --answer out" in refused.output


# The state of the server is in the log, encrypted, so the answer may come in another process.
@pytest.mark.parametrize("key", [(KEY,), ()], ids=["state kept", "state refused"])
def test_an_elicitation_is_answered_after_the_process_was_killed(shell, key):
    process = shell.start("run", "--agent", bank(shell, *key), "--id", "one", "Go.")
    wait_until(lambda: shell.log.exists() and asked(shell))
    process.kill()
    process.wait()
    assert [] == ledger(shell)
    given = ("--answer", "sure=true", "--answer", "reason=he paid twice")
    answered = shell("approve", "one.1.0.1", *given)
    assert 0 == answered.exit_code, answered.output
    ended = shell("resume", "one", "--inline")
    assert 0 == ended.exit_code, ended.output
    assert ["120 True he paid twice"] == ledger(shell)


def test_another_question_is_asked_again_instead_of_answered(shell):
    shell("run", "--agent", bank(shell), "--id", "one", "Go.")
    (shell.folder / "work" / "question.txt").write_text("Give {amount} back, and close the shop?")
    shell("approve", "one.1.0.1", "--answer", "sure=true", "--answer", "reason=paid twice")
    again = shell("resume", "one", "--inline")
    assert again.exit_code == Exit.WAITING, again.output
    assert "close the shop" in again.output
    assert ["one.1.0.2"] == asked(shell)
    assert [] == ledger(shell)


def test_an_answer_that_does_not_fit_the_form_is_refused(shell):
    shell("run", "--agent", bank(shell), "--id", "one", "Go.")
    for given, why in (
        (("--answer", "sure=perhaps", "--answer", "reason=x"), '"perhaps"'),
        (("--answer", "sure=true"), '"reason" is a required property'),
        (("--answer", "shure=true"), "did you mean 'sure'?"),
    ):
        refused = shell("approve", "one.1.0.1", *given)
        assert refused.exit_code == Exit.REFUSED
        assert why in refused.output, refused.output
