"""Commands on a log, wherever its URL says that it is."""

import json

import pytest

ASKS = '[policy]\napproval = "sensitive"\n'


def look_around(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))
    done = shell("run", "Look around", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 0, done.output


@pytest.fixture(params=["path", "sqlite", "memory"])
def there(request, shell, begin, monkeypatch):
    """Return a shell whose commands are about such a log, with a session that has completed."""
    if request.param == "memory":
        monkeypatch.setenv("CUELINE_LOG", f"memory:{shell.folder}")
        look_around(shell)
        return shell
    monkeypatch.setenv("CUELINE_LOG", "kept/log.db")
    begin(look_around)
    if request.param == "sqlite":
        monkeypatch.setenv("CUELINE_LOG", f"sqlite:///{shell.folder}/kept/log.db")
    return shell


@pytest.fixture
def asked(there):
    """Return the same, with a session `two` that waits for a person."""
    agent = there.agent(there.deletes, tools=("delete_file",), more=there.reachable)
    (there.folder / "work" / "list.txt").write_text("Ada\n")
    done = there("run", "Tidy up", "--agent", agent, "--inline", "--id", "two")
    assert done.exit_code == 3, done.output
    return there


def test_sessions_are_listed(there):
    listed = there("list")

    assert (True, True) == ("one" in listed.output, "completed" in listed.output), listed.output


def test_a_session_is_shown(there):
    shown = there("show", "on")

    assert (0, True) == (shown.exit_code, "There is nothing." in shown.output), shown.output


def test_its_events_are_told(there):
    events = [
        json.loads(line)
        for line in there("export", "one", "--format", "events").output.splitlines()
    ]

    assert "SessionCompleted" == events[-1]["type"]
    assert events[-1]["type"] in there("tail", "one", "--json").output


def test_what_it_cost_is_told(there):
    (row,) = there.json("costs")["rows"]

    assert (250, 30) == (row["sent_tokens"], row["output_tokens"])


def test_it_is_verified_and_replayed(there):
    verified, replayed = there("audit", "verify"), there("replay", "one")

    assert (0, 0) == (verified.exit_code, replayed.exit_code), verified.output + replayed.output


def test_it_is_forked(there):
    forked = there("fork", "one", "--at", "3", "--inline", "--id", "branch")

    assert 0 == forked.exit_code, forked.output
    assert "branch" in there("list").output


def test_a_question_is_answered_and_its_session_goes_on(asked):
    assert "two.1.0.1" in asked("pending").output

    approved = asked("approve", "two.1.0.1")
    resumed = asked("resume", "two", "--inline")

    assert (0, 0) == (approved.exit_code, resumed.exit_code), approved.output + resumed.output
    assert not (asked.folder / "work" / "list.txt").exists()


def test_a_session_is_stopped(asked):
    assert 0 == asked("stop", "two").exit_code
    assert "stopped" in asked("list").output


def test_more_is_said_to_a_session(asked):
    assert 0 == asked("send", "two", "Keep Ada").exit_code
    assert "Keep Ada" in asked("audit", "--json").output + asked("show", "two").output


def test_a_log_in_memory_is_gone_with_what_made_it(shell):
    agent = shell.agent(shell.hello)
    done = shell("run", "Hello", "--agent", agent, "--inline", "--log", "memory:")

    left = [shell(*words, "--log", "memory:") for words in (("list",), ("show", "one"))]

    assert (0, True) == (done.exit_code, "Good evening." in done.output), done.output
    told = "error: memory: there is no such log; nothing of a log in memory outlives its process"
    assert [(2, True)] * 2 == [(each.exit_code, told in each.stderr) for each in left]
    assert [] == list(shell.folder.glob("*memory*"))


@pytest.mark.parametrize("words", [("--detach",), ("--ray",)])
def test_a_log_in_memory_is_for_this_process_alone(shell, words):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hello", "--agent", agent, "--log", "memory:", *words)

    assert 2 == done.exit_code, done.output
    assert "no other process reaches this one's memory; run it inline" in done.stderr


def test_a_url_of_no_kind_of_log_is_refused_with_the_known_ones(shell):
    done = shell("list", "--log", "postgres://ada:s3cret@db/x")

    assert 2 == done.exit_code, done.output
    assert "postgres://ada:***@db/x: no kind of log has the scheme" in done.stderr
    assert "s3cret" not in done.output
