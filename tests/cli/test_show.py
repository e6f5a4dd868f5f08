"""`cueline show`: a session, and how it goes on."""

import os
import signal

from cueline.config.environment import user_name
from cueline.console.screen import Screen
from tests.cli.test_stopping import asked_to_stop


def test_a_session_is_shown_whole(finished):
    shown = finished("show", "one")

    assert shown.exit_code == 0
    assert "you: Look around\nI will look.\n" in shown.stdout
    assert "session one: completed · 2 turns · 1 tool call" in shown.stdout


def test_who_has_seen_enough_may_interrupt(finished, monkeypatch):
    show = Screen.show

    def interrupted(self, lines):
        monkeypatch.setattr(Screen, "show", show)
        show(self, lines)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Screen, "show", interrupted)

    shown = finished("show", "one")

    assert shown.exit_code == 130
    assert "I will look." not in shown.stdout


def test_a_result_is_shown_whole_where_that_is_asked_for(long_result):
    """Also what the model was not told, and what is wider than a terminal."""
    shown = long_result("show", "one", "--full").stdout

    assert f"    {long_result.text}\n" in shown
    assert "left out" not in shown
    assert "a" * 200 not in long_result("show", "one").stdout


def test_a_paused_session_says_how_it_goes_on(asking):
    asking("pause", "one")
    asking("resume", "one", "--inline", "--json")
    asking("pause", "one")
    asking("resume", "one", "--inline")
    shown = asking("show", "one").stdout

    assert "  cueline resume one\n" in shown


def test_a_session_that_nobody_has_taken_up_says_how_it_goes_on(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach", "--id", "one")

    shown = shell("show", "one").stdout

    assert "nobody has taken it up yet; go on with\n  cueline resume one\n" in shown


def test_a_session_that_waits_says_what_to_answer(asking):
    shown = asking("show", "one").stdout

    assert "  cueline approve one.1.0.1\n  cueline resume one\n" in shown


def test_what_was_said_to_a_session_that_nobody_drives_is_shown(asking):
    """C16: who has decided is not told to decide."""
    asking("approve", "one.1.0.1")
    asking("send", "one", "Hurry", "--followup")

    shown = asking("show", "one").stdout

    said = f"  one.1.0.1 granted by {user_name()}\n  followup: Hurry\n"
    way = "decided; go on with\n  cueline resume one\n"
    assert shown.endswith(f"not read yet, for nobody drives it:\n{said}{way}")


def test_a_session_that_was_asked_to_end_is_not_told_to_be_answered(asking):
    asked_to_stop(asking, "too late")

    shown = asking("show", "one").stdout

    assert shown.endswith("  stop asked: too late\ngo on with\n  cueline resume one\n")


def test_a_session_that_was_given_more_is_not_told_to_be_given_more(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",), more="[limits]\nmax_turns = 1\n")
    shell("run", "Hi", "--agent", agent, "--inline", "--id", "one")
    shell("budget", "raise", "one", "--max-turns", "9")

    shown = shell("show", "one").stdout

    assert shown.endswith("  asked for max_turns 9\ngo on with\n  cueline resume one\n")


def test_an_idle_session_that_has_news_only_has_to_be_driven(shell):
    shell("run", "--open", "Hi", "--agent", shell.agent(shell.hello), "--inline", "--id", "one")
    shell("send", "one", "And now?")

    shown = shell("show", "one").stdout

    assert shown.endswith("  note: And now?\ngo on with\n  cueline resume one\n")


def test_a_question_that_takes_two_people_is_shown_until_both_have_decided(shell):
    rule = '[[policy.rules]]\nname = "two"\nanswer = "ask"\ntools = ["delete_file"]\nvotes = 2\n'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=rule + shell.reachable)
    shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")

    shell("approve", "one.1.0.1")

    assert "  cueline approve one.1.0.1\n  cueline resume one\n" in shell("show", "one").stdout
