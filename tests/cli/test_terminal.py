"""The y/N prompt in a real terminal (000-025, 000-053 to 000-056)."""

import pytest

from cueline.testing.wait import wait_until
from tests.cli.terminal import RUN, needs_tmux


@pytest.fixture
def list_file(shell):
    shell.agent(shell.deletes, tools=("delete_file",))
    file = shell.folder / "work" / "list.txt"
    file.write_text("Ada\n")
    return file


@needs_tmux
def test_a_person_is_asked_and_says_yes(shell, tmux, list_file):
    tmux.command(*RUN)
    asked = tmux.sees("Approve? [y/N] (timeout: ")

    assert "⚠️  APPROVAL REQUIRED" in asked
    assert "│ Action: delete_file" in asked
    assert "│ Path: list.txt" in asked
    assert "│ Session: one" in asked
    assert list_file.exists()
    tmux.sees("(timeout: 4m ")  # it counts down

    tmux.type("y", "Enter")

    seen = tmux.sees("exit 0")
    assert "Approve? [y/N] y" in seen
    assert "approval one.1.0.1 granted by " in seen
    assert not list_file.exists()


def test_just_enter_is_no(shell, terminal, list_file):
    terminal.command(*RUN)
    terminal.sees("Approve? [y/N]")

    terminal.type("Enter")

    seen = terminal.sees("exit 0")
    assert "approval one.1.0.1 denied by " in seen
    assert list_file.exists()


def test_who_is_asked_sees_what_is_in_flight_and_says_why_not(shell, terminal, list_file):
    terminal.command(*RUN)
    terminal.sees("waiting for a person's answer · ")

    terminal.type("perhaps", "Enter")
    terminal.sees("perhaps is no answer: y, n, a, e, d or ?")
    terminal.type("n it is used", "Enter")

    seen = terminal.sees("exit 0")
    assert "Action rejected by human operator: it is used" in seen
    assert "Ctrl-C pauses" not in seen  # the line is gone with what it was about
    assert list_file.exists()


def test_plain_text_has_no_line_of_what_is_in_flight(shell, terminal, list_file):
    terminal.command(*RUN, "--plain")
    terminal.sees("Approve? [y/N]")

    assert "waiting for a person" not in terminal.screen
    terminal.type("y", "Enter")
    terminal.sees("exit 0")


@needs_tmux
def test_sigterm_gives_the_terminal_back(shell, tmux, list_file):
    tmux.command(*RUN)
    tmux.sees("Approve? [y/N]")

    tmux.type("C-z")
    tmux.sees("exit 1")
    tmux.type("kill %1; fg; echo over", "Enter")

    tmux.sees("cueline resume one")
    tmux.sees("\nover\n")
    tmux.type("stty -a", "Enter")
    assert " icanon" in tmux.sees(" echo ")


def test_a_person_changes_a_call_and_allows_it(shell, terminal, list_file):
    """I9: what the person saw last is what runs."""
    other = list_file.with_name("other.txt")
    other.write_text("Bob\n")
    terminal.command(*RUN)
    terminal.sees("e change it")

    terminal.type("e", "Enter")
    terminal.sees("Change (NAME=VALUE, or all of it in JSON; Enter: leave it)")
    terminal.type("path=other.txt", "Enter")
    terminal.sees("│ Path: other.txt")
    terminal.type("y", "Enter")

    terminal.sees("exit 0")
    assert (True, False) == (list_file.exists(), other.exists())


PRINTER = """
import os

from cueline import tool


def price(pages):
    return {1: "0.05", 2: "0.10", 9: "0.45", 90: "4.50"}.get(pages) or os.environ["BILL"] / pages


@tool(cost_usd=price)
def print_pages(pages: int) -> str:
    return f"{pages} pages"
"""


# 004-024, I9: a person allows what it costs as they changed it, not as it was asked for.
def test_a_call_that_is_changed_is_shown_with_what_it_costs_then(shell, terminal):
    (shell.folder / "printer.py").write_text(PRINTER)
    script = shell.deletes.replace("delete_file", "print_pages").replace(
        'path = "list.txt"', "pages = 9"
    )
    bands = '[policy]\napproval = ["cost"]\nask_from_usd = "0.2"\ndeny_from_usd = "4"\n'
    shell.agent(script, tools=(f"{shell.folder}/printer.py:print_pages",), more=bands)
    terminal.command(*RUN)
    assert "│ Rule: cost, about $0.45" in terminal.sees("Approve? [y/N]")

    terminal.type("e", "Enter", "pages=1", "Enter")
    terminal.sees("│ Rule: cost, about $0.05")
    terminal.type("e", "Enter", "pages=90", "Enter")
    terminal.sees("the edit: a rule denies it (cost cap)")
    terminal.type("pages=7", "Enter")
    terminal.sees("│ Rule: cost, of unknown cost (KeyError: 'BILL')")
    terminal.type("e", "Enter", "pages=2", "Enter")
    terminal.sees("│ Pages: 2 ")
    terminal.type("y", "Enter")

    assert "2 pages" in terminal.sees("exit 0")


def test_an_answer_from_another_shell_takes_the_question_away(shell, terminal, list_file):
    """000-054."""
    terminal.command(*RUN)
    terminal.sees("Approve? [y/N]")

    told = shell("approve", "one.1.0.1")

    seen = terminal.sees("exit 0")
    assert "one.1.0.1: granted\n" == told.stdout
    assert "Approve? [y/N]" not in seen


def test_nobody_answers_in_time(shell, terminal, list_file):
    """000-056: the call is not run, and the session is paused."""
    agent = shell.folder / "agent.toml"
    agent.write_text(f"{agent.read_text()}\n[policy]\napproval_seconds = 3\n")
    terminal.command(*RUN)

    seen = terminal.sees("exit 3")

    assert "approval one.1.0.1 expired" in seen
    assert "session one: paused" in seen
    assert list_file.exists()


@needs_tmux
def test_ctrl_c_at_the_prompt_pauses_and_gives_the_keyboard_back(shell, tmux, list_file):
    tmux.command(*RUN)
    tmux.sees("Approve? [y/N]")

    tmux.type("C-c")

    assert "cueline resume one" in tmux.sees("exit 3")
    tmux.type("echo heard", "Enter")
    tmux.sees("\nheard\n")


@needs_tmux
def test_a_run_in_the_background_leaves_the_keyboard_to_the_shell(shell, tmux, list_file):
    tmux.command(*RUN)
    tmux.sees("Approve? [y/N]")
    tmux.type("C-z")
    tmux.sees("exit 1")  # of a stop

    tmux.type("bg", "Enter")
    tmux.type("echo it is $((40 + 2))", "Enter")
    tmux.sees("it is 42")
    assert 0 == shell("approve", "one.1.0.1").exit_code
    wait_until(lambda: not list_file.exists())
    tmux.type("wait; echo over", "Enter")

    assert "Stopped (tty" not in tmux.sees("\nover\n")


@needs_tmux
@pytest.mark.parametrize("keys", [["bg", "Enter"], ["Enter"]], ids=["background", "stop"])
def test_who_comes_back_from_the_background_answers(shell, tmux, list_file, keys):
    tmux.command(*RUN)
    tmux.sees("Approve? [y/N]")
    tmux.type("C-z")
    tmux.sees("exit 1")
    tmux.type(*keys)
    tmux.type("fg; echo back", "Enter")
    tmux.sees("--id one\nApprove? [y/N]")  # the shell reads no more keys

    tmux.type("y", "Enter")

    tmux.sees("\nback\n")
    assert not list_file.exists()


def test_several_questions_are_asked_one_after_another(shell, terminal, list_file):
    twice = shell.deletes.replace(
        "calls = [",
        'calls = [{ name = "delete_file", arguments = { path = "other.txt" } }, ',
    )
    shell.agent(twice, tools=("delete_file",))
    terminal.command(*RUN)
    terminal.sees("Path: other.txt")

    terminal.type("n", "Enter")
    terminal.sees("Path: list.txt")
    terminal.type("y", "Enter")

    seen = terminal.sees("exit 0")
    assert "approval one.1.0.1 denied" in seen
    assert "approval one.1.1.1 granted" in seen


RULE = '[[policy.rules]]\nname = "careful"\nanswer = "ask"\ntools = ["delete_file"]\n'


def test_who_asked_for_it_is_told_that_others_have_to_allow_it(shell, terminal, monkeypatch):
    """C17."""
    more = f"{RULE}exclude_requester = true\n"
    shell.agent(shell.deletes, tools=("delete_file",), more=more)
    terminal.command(*RUN)
    asked = terminal.sees("Deny it? [n] (timeout: ")

    assert "asked for the session, and may not allow it; n denies it" in asked
    assert "y allow" not in asked
    monkeypatch.setenv("LOGNAME", "bob")
    shell("approve", "one.1.0.1")
    assert "granted by bob" in terminal.sees("exit 0")


def test_one_of_two_people_is_told_that_another_has_to_say_yes(shell, terminal, monkeypatch):
    shell.agent(shell.deletes, tools=("delete_file",), more=f"{RULE}votes = 2\n")
    terminal.command(*RUN)
    assert "e change it" not in terminal.sees("y allow · n deny (or only Enter) · d")

    terminal.type("y", "Enter")

    terminal.sees("; it takes 2 people")
    monkeypatch.setenv("LOGNAME", "bob")
    shell("approve", "one.1.0.1")
    terminal.sees("exit 0")


def test_who_resumes_is_shown_what_a_call_would_change(shell, terminal):
    writes = shell.deletes.replace("delete_file", "write_file").replace(
        '"list.txt" }', '"list.txt", content = "Bob\\n" }'
    )
    more = f'policy.approval = "all_writes"\n{shell.reachable}'
    shell.agent(writes, tools=("write_file",), more=more)
    assert 3 == shell(*RUN).exit_code

    terminal.command("resume", "one", "--inline")

    assert "+Bob" in terminal.sees("Approve? [y/N]")


def test_a_long_call_is_shown_whole_before_it_is_approved(shell, terminal):
    long = shell.deletes.replace("delete_file", "write_file").replace(
        '"list.txt" }', f'"list.txt", content = "{"Bob " * 40}the end" }}'
    )
    more = f'policy.approval = "all_writes"\n{shell.reachable}'
    shell.agent(long, tools=("write_file",), more=more)
    assert 3 == shell(*RUN).exit_code

    terminal.command("approve", "one.1.0.1")
    shown = terminal.sees("Allow it? [y/N]")
    terminal.type("n", "Enter")
    terminal.sees("exit 1")
    (waiting,) = shell.json("pending")
    terminal.command("approve", "one.1.0.1", "--yes")

    assert "the end" in shown
    assert None is waiting["given"]
    assert "granted" in terminal.sees("exit 0")


def test_who_resumes_is_asked_what_still_waits(asking, terminal):
    terminal.command("resume", "one", "--inline")
    terminal.sees("Approve? [y/N] (timeout: 23h 59m)")

    terminal.type("y", "Enter")

    assert "Done." in terminal.sees("exit 0")
