"""`send`, `pause`, `stop`, `pending`, `approve`, `deny` and `fork`, in one process."""

import asyncio
import json
from dataclasses import replace
from getpass import getuser

import pytest

from cueline.actors.presence import presence_of
from cueline.client.client import Client, open_client
from cueline.errors import SessionFinishedError
from cueline.runtime.up_record import UpRecord


def test_a_decision_from_another_shell_counts_when_the_session_is_driven(asking):
    """000-054; with nothing running."""
    told = asking("approve", "one.1.0.1", "--note", "fine")
    done = asking("resume", "one", "--inline")

    assert told.exit_code == 0
    assert "one.1.0.1: granted; nothing drives it now" in told.stdout
    assert done.exit_code == 0
    assert "approval one.1.0.1 granted by " in done.stdout
    assert not (asking.folder / "work" / "list.txt").exists()


def test_a_denied_call_is_not_run_and_the_agent_goes_on(asking):
    """000-055."""
    asking("deny", "one.1.0.1", "--reason", "keep it")
    done = asking("resume", "one", "--inline")

    assert done.exit_code == 0
    assert (asking.folder / "work" / "list.txt").exists()
    assert "keep it" in done.stdout


def test_what_does_not_wait_any_more_is_refused_with_its_state(asking):
    asking("approve", "one.1.0.1")
    asking("resume", "one", "--inline")

    done = asking("deny", "one.1.0.1")

    assert done.exit_code == 2
    assert "one.1.0.1: it does not wait any more: granted by " in done.stderr


def test_the_first_decision_counts_also_before_anybody_has_read_it(asking):
    first, again = asking("deny", "one.1.0.1"), asking("deny", "one.1.0.1")
    other = asking("approve", "one.1.0.1")
    decisions = asking("audit", "--type", "DecisionGiven", "--json").stdout.splitlines()

    assert (0, 0, 2) == (first.exit_code, again.exit_code, other.exit_code)
    assert "one.1.0.1: it was denied by " in other.stderr
    assert len(decisions) == 1


@pytest.mark.parametrize("name", ["one.9.9.9", "nobody", "Not An Id"])
def test_an_approval_that_never_was_is_refused(asking, name):
    done = asking("approve", name)

    assert done.exit_code == 2
    assert "there is no such approval; `cueline pending` lists what waits" in done.stderr


def test_what_waits_is_listed_with_the_time_left(asking):
    """000-025."""
    head, row = asking("pending").stdout.splitlines()

    assert head.split()[:2] == ["APPROVAL", "SESSION"]
    assert row.startswith("one.1.0.1  one      may it run?  23h 5")
    assert row.endswith('delete_file path="list.txt"')


@pytest.mark.parametrize(
    ("verb", "decision", "told"), [("approve", "grant", "granted"), ("deny", "deny", "denied")]
)
def test_what_was_decided_and_not_read_is_marked(asking, verb, decision, told):
    asking(verb, "one.1.0.1")

    row = asking("pending").stdout.splitlines()[1]
    assert f"{told} by {getuser()}, not read yet" in row
    (listed,) = asking.json("pending")
    assert (decision, getuser()) == (listed["given"], listed["given_by"])
    asking("resume", "one", "--inline")
    assert "nothing waits for a decision\n" == asking("pending").stdout


def test_nothing_waits(finished):
    assert "nothing waits for a decision\n" == finished("pending").stdout
    assert [] == finished.json("pending")


def test_a_message_waits_in_the_inbox_while_nothing_runs(asking):
    told = asking("send", "one", "Wait for Ada", "--steer")

    assert told.exit_code == 0
    assert (
        "one: sent as a steer; nothing drives it now, it counts when it is next driven: "
        "`cueline resume one`\n"
    ) == told.stdout
    done = asking("resume", "one", "--inline")
    assert "you (steer): Wait for Ada" in done.stdout
    assert "Skipped due to queued user message." in done.stdout


def test_a_resume_takes_back_a_pause_that_nobody_has_read(asking):
    asking("pause", "one")

    done = asking("resume", "one", "--inline")

    assert "session one: waiting" in done.stdout
    assert "waiting" == asking.json("list")[0]["status"]


@pytest.fixture
def kept_up(asking):
    """A log that an `up` has, which does not drive session `one`."""
    UpRecord(address="a:1", namespace="n", version="1", keeper=presence_of("up")).write(asking.log)
    return asking


def resumes(shell):
    """Return how often session `one` was told to go on."""
    return len(shell("audit", "--type", "ResumeAsked", "--json").stdout.splitlines())


# It has set the session aside, or found it and leaves it alone.
@pytest.mark.parametrize("said", [[], ["stop"]])
def test_an_up_is_told_of_what_is_resumed_and_nobody_drives(kept_up, said):
    for word in said:
        kept_up(word, "one")

    done = kept_up("resume", "one", "--detach")

    assert 0 == done.exit_code
    assert 1 == resumes(kept_up)


def test_what_is_resumed_beside_an_up_is_no_word_to_that(kept_up):
    kept_up("approve", "one.1.0.1")

    assert 0 == kept_up("resume", "one", "--inline").exit_code
    assert 0 == resumes(kept_up)


def test_lanes_exclude_each_other(asking):
    done = asking("send", "one", "hi", "--steer", "--followup")

    assert done.exit_code == 2
    assert "--steer and --followup exclude each other" in done.stderr


def test_a_message_to_a_session_that_has_ended_is_refused(finished):
    done = finished("send", "one", "hi")

    assert done.exit_code == 2
    assert "one: the session has ended: completed" in done.stderr
    assert "cueline fork one --at VERSION" in done.stderr


def test_no_secret_of_the_agent_gets_in_by_a_message(shell, monkeypatch):
    monkeypatch.setenv("TEA_TOKEN", "oolong-4711-jasmine")
    agent = shell.agent(shell.hello, more='secrets = ["TEA_TOKEN"]\n')
    shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--open")

    told = shell("send", "one", "it is oolong-4711-jasmine")

    assert told.exit_code == 0
    assert b"oolong" not in shell.log.read_bytes()


def test_pausing_is_asked_once(asking):
    first, again = asking("pause", "one"), asking("pause", "one")

    assert "one: asked to pause; nothing drives it now" in first.stdout
    assert "one: it was asked to pause before; nothing drives it now" in again.stdout
    assert (0, 0) == (first.exit_code, again.exit_code)


def test_a_session_that_has_ended_is_not_resumed(finished):
    """000-034."""
    done = finished("resume", "one", "--inline")

    assert done.exit_code == 2
    assert "one: the session has ended: completed" in done.stderr


def test_a_session_whose_key_is_gone_is_not_resumed(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-real-key")
    file = shell.folder / "agent.toml"
    file.write_text('name = "a"\nprovider = "anthropic"\nmodel = "claude-sonnet-5-5"\n')
    shell("run", "Hi", "--agent", "agent.toml", "--detach", "--id", "one")
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    done = shell("resume", "one", "--inline")

    assert done.exit_code == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert [] == shell.types("one")


def test_a_fork_goes_on_from_the_past_with_files_of_its_own(asking):
    work = asking.folder / "work"

    done = asking("fork", "one", "--at", "4", "--id", "two", "--inline", "--goal", "Keep it")

    assert done.exit_code == 0
    assert "forked from one at version 4" in done.stdout
    assert "you: Keep it" in done.stdout
    assert "Ada\n" == (asking.folder / "work-two" / "list.txt").read_text()
    assert (work / "list.txt").exists()
    document = json.loads(asking("export", "two").stdout)
    assert (document["parent"], document["forked_at"]) == ("one", 4)
    assert document["metrics"]["inherited"]["turns"] == 1
    assert any("is a copy of" in str(message) for message in document["messages"])


def test_a_fork_of_an_open_session_stays_open(shell):
    agent = shell.agent(f'{shell.hello}\n[[reply]]\ntext = "And now?"\n')
    assert 0 == shell("run", "Hi", "-a", agent, "--inline", "--open", "--id", "one").exit_code
    at = len(shell.types("one"))

    done = shell("fork", "one", "--at", str(at), "--inline", "--id", "two")

    assert (0, "idle") == (done.exit_code, shell.json("export", "two")["status"]), done.output


def test_a_fork_is_replayed_checked_and_verified(asking):
    """I10."""
    asking("fork", "one", "--at", "4", "--id", "two", "--inline")

    assert 0 == asking("replay", "two", "--check").exit_code
    assert 0 == asking("audit", "verify").exit_code
    assert 0 == asking("show", "two").exit_code


def test_a_fork_needs_a_version_that_is_there(asking):
    done = asking("fork", "one", "--at", "99", "--inline")

    assert done.exit_code == 2
    assert "one: there is no version 99; its last is " in done.stderr
    assert not list(asking.folder.glob("work-*"))


def test_a_fork_on_another_machine_names_the_right_one(asking, monkeypatch):
    right = json.loads(asking("export", "one").stdout)["workspace"]["machine"]
    monkeypatch.setenv("CUELINE_MACHINE", "elsewhere")

    done = asking("fork", "one", "--at", "4", "--inline")

    assert done.exit_code == 2
    assert f"is on {right}; fork it there" in done.stderr


def test_a_fork_whose_id_is_taken_leaves_no_folder(asking):
    done = asking("fork", "one", "--at", "4", "--inline", "--id", "one")

    assert done.exit_code == 2
    assert not list(asking.folder.glob("work-*"))


class Meanwhile:
    """A store that somebody else uses just before, or just after, our append."""

    def __init__(self, store, before=None, after=None):
        self._store, self._before, self._after = store, before, after

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, writes, key):
        if self._before:
            await asyncio.to_thread(self._before)
        appended = await self._store.append(writes, key)
        if self._after:
            await asyncio.to_thread(self._after)
        return appended


@pytest.fixture
def denied(shell):
    """A shell whose log holds a session `one` that ends when it is next driven."""
    script = f'{shell.deletes}\n[[reply]]\ntext = "Noted."\n'
    agent = shell.agent(script, tools=("delete_file",), more=shell.reachable)
    shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    shell("deny", "one.1.0.1")
    return shell


@pytest.mark.parametrize(("moment", "counts"), [("before", False), ("after", True)])
async def test_who_speaks_to_a_session_that_ends_just_then_learns_whether_it_counts(
    denied, moment, counts
):
    """Nobody reads it later: no process that drives a session outlives it for long."""

    def end():
        assert 0 == denied.start("resume", "one", "--inline").wait()

    async with open_client(denied.log) as client:
        crossed = replace(client.log, store=Meanwhile(client.log.store, **{moment: end}))
        sending = Client(crossed, client.place).send("one", "One more")

        if counts:
            assert (await sending).recorded
        else:
            with pytest.raises(SessionFinishedError, match="before it could read that: completed"):
                await sending


OTHER = '[[reply]]\ntext = "No."\n\n[[reply]]\ntext = "From the other."\n'


def test_another_model_is_asked_for_from_any_shell(shell):
    shell("run", "Go", "--agent", shell.agent(shell.hello), "--id", "one", "--open", "--inline")
    (shell.folder / "other.toml").write_text(OTHER)

    told = shell("send", "one", "--model", "other.toml")
    shell("send", "one", "And?", "--model", "scripted/other.toml")
    done = shell("resume", "one", "--inline")

    assert "one: it goes on with other.toml from its next request on" in told.stdout
    assert "asked for scripted other.toml" in done.stdout
    assert "the model is now scripted other.toml" in done.stdout
    assert "From the other." in done.stdout
    assert "other.toml" == shell.json("list")[0]["model"]
    assert 0 == shell("replay", "one", "--check").exit_code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "skripted/x"], "did you mean 'scripted'"),
        (["--model", "nowhere.toml"], "nowhere.toml"),
        ([], "TEXT is missing"),
        (["--steer", "--model", "other.toml"], "TEXT is missing"),
    ],
)
def test_a_model_that_cannot_be_had_is_named(shell, words, said):
    shell("run", "Go", "--agent", shell.agent(shell.hello), "--id", "one", "--open", "--inline")

    done = shell("send", "one", *words)

    assert (2, True) == (done.exit_code, said in done.stderr), done.stderr
