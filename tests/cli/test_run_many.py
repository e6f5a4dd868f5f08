"""`cueline run --many`: a session for each line of a file."""

import json
import signal

import pytest

from cueline.client.start import id_of_key
from cueline.testing.wait import wait_until

SLOW = """
[[reply]]
turn = 1
attempt = 1
delay_seconds = 600
text = "Too late."

[[reply]]
turn = 1
text = "Here I am."
"""
FAILS = '[[reply]]\nfail = { kind = "refused", message = "no" }\n'


def write(shell, *tasks):
    lines = [json.dumps(each) for each in tasks]
    (shell.folder / "tasks.jsonl").write_text("\n".join(lines))
    return ("run", "--many", "tasks.jsonl", "--inline", "--agent")


def test_each_line_is_a_session_and_the_same_command_starts_none_again(shell):
    agent = shell.agent(shell.hello)
    many = write(shell, "one", {"goal": "two", "labels": {"team": "search"}})

    first = shell(*many, agent, "--label", "kind=mail")
    again = shell(*many, agent)

    assert (0, 0) == (first.exit_code, again.exit_code)
    assert first.stdout.startswith("2 tasks: 2 completed · $0 · ")
    assert "2/2 key-" in first.stderr
    assert again.stdout.endswith("· 2 started before\n")
    labels = {each["goal"]: each["labels"] for each in shell.json("list")}
    assert {"two": {"team": "search"}, "one": {}} == {
        goal: {key: value for key, value in each.items() if key == "team"}
        for goal, each in labels.items()
    }
    assert ["mail", "mail"] == [each["kind"] for each in labels.values()]


def test_a_line_ends_with_a_newline_and_nothing_else(shell):
    goal = "one\u2028two\u0085four"
    (shell.folder / "tasks.jsonl").write_text(json.dumps({"goal": goal}, ensure_ascii=False))

    shell("run", "--many", "tasks.jsonl", "--inline", "--agent", shell.agent(shell.hello))

    assert [goal] == [each["goal"] for each in shell.json("list")]


def test_another_key_starts_all_anew(shell):
    many = write(shell, "one")
    agent = shell.agent(shell.hello)

    shell(*many, agent)
    shell(*many, agent, "--key", "monday")

    assert 2 == len(shell.json("list"))


def test_a_task_that_failed_is_shown_and_decides_the_exit_code(shell):
    done = shell(*write(shell, "one"), shell.agent(FAILS))

    assert 1 == done.exit_code
    assert "1 tasks: 1 failed" in done.stdout
    assert "failed" in done.stdout.splitlines()[1]


def test_programs_get_one_document(shell):
    told = shell.json(*write(shell, "one"), shell.agent(shell.hello))

    (task,) = told["tasks"]
    assert ("one", "completed", "Good evening.") == (task["goal"], task["status"], task["result"])


def test_after_ctrl_c_the_same_command_goes_on(shell):
    many = (*write(shell, {"goal": "one", "key": "k"}), shell.agent(SLOW))

    process = shell.start(*many)
    wait_until(lambda: "ModelStarted" in shell.types(id_of_key("k")))
    process.send_signal(signal.SIGINT)
    assert "Ctrl-C again leaves" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=30)
    again = shell(*many)

    assert 130 == process.returncode, told
    assert "the same command goes on" in told
    assert 0 == again.exit_code, again.output
    assert "1 completed" in again.stdout
    assert again.stdout.endswith("· 1 started before\n")


def test_a_task_can_have_parameters(shell):
    (shell.folder / "echo.toml").write_text(
        'name = "echo"\nprovider = "procedure"\ncommand = ["echo", "{{ input.word }}"]\n'
        "[parameters_schema.properties.word]\ntype = 'string'\n"
    )
    many = write(shell, {"parameters": {"word": "hi"}}, {"parameters": {"word": "ho"}})

    told = shell.json(*many, "echo.toml")

    assert ["hi", "ho"] == [each["result"].strip() for each in told["tasks"]]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"gaol": "x"}', "tasks.jsonl:1: key 'gaol': it is unknown: did you mean 'goal'?"),
        ("{", "tasks.jsonl:1: it is not JSON"),
        ('""', "tasks.jsonl:1: key 'goal'"),
        ("", "tasks.jsonl: it has no tasks"),
        ('{"goal": "x", "key": "k"}\n{"goal": "y", "key": "k"}', "tasks.jsonl:2: another line"),
    ],
)
def test_a_wrong_line_is_named_before_anything_is_recorded(shell, line, named):
    many = write(shell)
    (shell.folder / "tasks.jsonl").write_text(line)

    done = shell(*many, shell.agent(shell.hello))

    assert 2 == done.exit_code
    assert named in done.stderr
    assert not shell.log.exists()


@pytest.mark.parametrize("words", [("Hi",), ("--id", "one"), ("--detach",)])
def test_what_makes_no_sense_for_many_sessions_is_refused(shell, words):
    many = ("run", "--many", "tasks.jsonl", "--agent", shell.agent(shell.hello))

    done = shell(*many, *words)

    assert 2 == done.exit_code
    assert "exclude each other" in done.stderr
