"""What a person may make of a question, from a shell with nothing running."""

import asyncio
import json

import pytest

from cueline.client.decide import was_given
from cueline.client.question import always_text, approval_of
from cueline.errors import NotPendingError
from cueline.events.inbox import DecisionGiven
from cueline.runtime.open_log import open_log
from cueline.tools.catalogue import named_tool

TWICE = """
[[reply]]
calls = [{ name = "delete_file", arguments = { path = "list.txt" } }]

[[reply]]
calls = [{ name = "delete_file", arguments = { path = "list.txt" } }]

[[reply]]
text = "Done."
"""


def cueline_tool(name):
    return named_tool(name, "agent").spec()


def files(shell):
    return sorted(path.name for path in (shell.folder / "work").iterdir())


def start(shell, script, more="", tools=("delete_file",)):
    agent = shell.agent(script, tools=tools, more=f"{more}{shell.reachable}")
    for name in ("list.txt", "other.txt"):
        (shell.folder / "work" / name).write_text("Ada\n")
    done = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 3, done.output
    return shell


def told(shell):
    return json.dumps(shell.json("export", "one")["messages"])


# I9, C18
def test_an_edited_call_runs_as_it_was_edited(shell):
    start(shell, shell.deletes)

    done = shell("approve", "one.1.0.1", "--edit", "path=other.txt", "--note", "the other one")
    shell("resume", "one", "--inline")

    assert done.exit_code == 0, done.output
    assert ["list.txt"] == files(shell)
    assert "with other arguments" in told(shell)
    assert "the other one" in told(shell)


def test_an_edit_may_be_the_whole_of_the_arguments(shell):
    start(shell, shell.deletes)

    shell("approve", "one.1.0.1", "--edit", '{"path": "other.txt"}')
    shell("resume", "one", "--inline")

    assert ["list.txt"] == files(shell)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("other.txt", "'other.txt' is neither NAME=VALUE nor a JSON object"),
        ("{path", "it is not JSON"),
        ('{"path": NaN}', "it is not JSON: NaN is no value in it"),
        ("path=7", '7 is not of type "string"'),
        ("nothing=7", "nothing"),
        ("path=keep/a", "a rule denies it (kept)"),
    ],
)
def test_an_edit_that_cannot_run_is_refused_at_once(shell, edit, reason):
    rule = '[[policy.rules]]\nname = "kept"\nanswer = "deny"\npaths = ["keep/**"]\n'
    start(shell, shell.deletes, rule)

    done = shell("approve", "one.1.0.1", "--edit", edit)

    assert (2, True) == (done.exit_code, reason in done.stderr), done.stderr
    assert "one.1.0.1" == shell.json("pending")[0]["id"]
    assert shell.json("pending")[0]["given"] is None


PRINTER = """
from decimal import Decimal

from cueline import tool


@tool(cost_usd=lambda pages: pages * Decimal("0.05"))
def print_pages(pages: int) -> str:
    return f"{pages} pages"
"""
TWENTY = """
[[reply]]
calls = [{ name = "print_pages", arguments = { pages = 20 } }]

[[reply]]
text = "Done."
"""
BANDS = '[policy]\napproval = ["cost"]\ndeny_from_usd = "4"\n'


# 004-024: an edit is judged by what it would cost, at the shell and where the session is driven.
def test_an_edit_that_would_cost_too_much_is_refused_at_once(shell):
    (shell.folder / "printer.py").write_text(PRINTER)
    start(shell, TWENTY, BANDS, tools=(f"{shell.folder}/printer.py:print_pages",))

    asked, seen = shell.json("pending")[0], shell("pending").stdout
    refused = shell("approve", "one.1.0.1", "--edit", "pages=90")
    done = shell("approve", "one.1.0.1", "--edit", "pages=60")
    shell("resume", "one", "--inline")

    assert "1.00" == asked["estimated_cost"]
    assert "about $1.00" in " ".join(seen.split())
    assert "a rule denies it (cost cap)" in refused.stderr
    assert (2, 0) == (refused.exit_code, done.exit_code)
    assert "60 pages" in told(shell)


def test_what_is_allowed_for_good_is_not_asked_again(shell):
    start(shell, TWICE)

    shell("approve", "one.1.0.1", "--always")
    done = shell("resume", "one", "--inline")

    assert done.exit_code == 0, done.output
    assert 1 == shell.types("one").count("ApprovalRequested")


def test_what_is_allowed_for_good_may_be_a_folder(shell):
    start(shell, TWICE)

    shell("approve", "one.1.0.1", "--always", "--within", "notes/**")
    done = shell("resume", "one", "--inline")

    assert 3 == done.exit_code
    assert 2 == shell.types("one").count("ApprovalRequested")


def test_where_it_holds_needs_for_good(asking):
    assert 2 == asking("approve", "one.1.0.1", "--within", "a/**").exit_code


# Else it would be asked about again, though that was not to be.
def test_a_tool_without_paths_cannot_be_allowed_in_a_folder(shell):
    (shell.folder / "printer.py").write_text(PRINTER)
    start(shell, TWENTY, BANDS, tools=(f"{shell.folder}/printer.py:print_pages",))

    done = shell("approve", "one.1.0.1", "--always", "--within", "notes/**")

    assert 2 == done.exit_code
    assert "always: print_pages names no paths; without one, it is for exactly" in done.stderr
    assert shell.json("pending")[0]["given"] is None


TWO = '[[policy.rules]]\nname = "two"\nanswer = "ask"\ntools = ["delete_file"]\nvotes = 2\n'


def test_a_person_counts_once(shell, monkeypatch):
    start(shell, shell.deletes, TWO)
    monkeypatch.setenv("LOGNAME", "ann")
    told = shell("approve", "one.1.0.1").stdout
    assert "granted by ann, and it takes 2 people" in told
    waiting = "may it run? (0 of 2 said yes); granted by ann, not read yet"
    assert waiting in shell("pending").stdout
    shell("resume", "one", "--inline")

    again = shell("approve", "one.1.0.1")

    assert 2 == again.exit_code
    assert "ann has allowed it already, and it takes 2 people" in again.stderr
    assert "may it run? (1 of 2 said yes)" in shell("pending").stdout
    monkeypatch.setenv("LOGNAME", "bob")
    shell("approve", "one.1.0.1")
    assert 0 == shell("resume", "one", "--inline").exit_code


def test_two_people_may_answer_while_nothing_runs(shell, monkeypatch):
    start(shell, shell.deletes, TWO)
    for person in ("ann", "ann", "bob"):
        monkeypatch.setenv("LOGNAME", person)
        assert 0 == shell("approve", "one.1.0.1").exit_code

    waiting = "may it run? (0 of 2 said yes); granted by ann, bob, not read yet"
    assert waiting in shell("pending").stdout
    assert 0 == shell("resume", "one", "--inline").exit_code
    decisions = shell("audit", "--type", "DecisionGiven", "--json").stdout.splitlines()
    assert 2 == len(decisions)


# Asking twice is asking once; asking for more is not.
@pytest.mark.parametrize(
    ("rule", "more", "why"),
    [
        ("", ["--always"], "it was granted by ann before"),
        ("", ["--note", "It is noon"], "it was granted by ann before"),
        (TWO, ["--note", "It is noon"], "ann has allowed it before"),
    ],
)
def test_nothing_can_be_added_to_a_decision_that_was_given(shell, monkeypatch, rule, more, why):
    start(shell, shell.deletes, rule)
    monkeypatch.setenv("LOGNAME", "ann")
    shell("approve", "one.1.0.1")

    again, added = shell("approve", "one.1.0.1"), shell("approve", "one.1.0.1", *more)

    assert (0, 2) == (again.exit_code, added.exit_code)
    assert f"{why}, which counts when it is next driven" in added.stderr


# Two shells at once: neither saw the other's word before it gave its own.
@pytest.mark.parametrize("verdict", ["grant", "deny"])
def test_whose_decision_was_recorded_second_learns_whether_it_counts(shell, verdict):
    start(shell, shell.deletes)

    async def decide():
        async with open_log(shell.log) as log:
            state = await approval_of(log.journal(), "one.1.0.1")
            said = {"approval": "one.1.0.1", "digest": state.opened.digest}
            first = DecisionGiven(**said, verdict="deny", by="bob")
            second = DecisionGiven(**said, verdict=verdict, by="ann")
            for each in (first, second):
                at = await log.post("session-default/one", each, None)
            return await was_given(
                log.journal(), state, second, "session-default/one", until=at.versions[0] - 1
            )

    if verdict == "deny":
        assert asyncio.run(decide())
    else:
        with pytest.raises(NotPendingError, match="it was denied by bob before"):
            asyncio.run(decide())


# C17
def test_whoever_started_the_session_may_be_excluded(shell, monkeypatch):
    rule = TWO.replace("votes = 2", "exclude_requester = true")
    monkeypatch.setenv("LOGNAME", "ann")
    start(shell, shell.deletes, rule)

    done = shell("approve", "one.1.0.1")

    assert 2 == done.exit_code
    assert "ann asked for the session, and may not allow it" in done.stderr


# 000-025, 004-022
def test_pending_tells_why_it_is_asked(asking):
    (waiting,) = asking.json("pending")

    assert ("sensitive", 1, 0) == (waiting["rule"], waiting["votes_needed"], waiting["votes"])
    assert "needs a person's word by the rule sensitive" in waiting["rationale"]


WRITES = """
[[reply]]
calls = [{ name = "write_file", arguments = { path = "list.txt", content = "Ada\\nBob\\n" } }]

[[reply]]
text = "Done."
"""


# A diff for writes.
def test_pending_shows_what_a_write_would_change(shell):
    start(shell, WRITES, '[policy]\napproval = "all_writes"\n', tools=("write_file",))

    (waiting,) = shell.json("pending")

    assert ("all_writes", "--- a/list.txt\n+++ b/list.txt\n@@ -1 +1,2 @@\n Ada\n+Bob") == (
        waiting["rule"],
        waiting["preview"],
    )


def test_pending_says_where_a_call_that_it_cuts_is_whole(shell):
    long = WRITES.replace("Ada", "Ada" * 40)
    start(shell, long, '[policy]\napproval = "all_writes"\n', tools=("write_file",))

    told = shell("pending").stdout

    assert "AdaA" in told
    assert "is cut; see it and its change whole with\n  cueline pending APPROVAL" in told


def test_pending_shows_one_call_whole(shell):
    long = WRITES.replace("Ada", "Ada" * 200)
    start(shell, long, '[policy]\napproval = "all_writes"\n', tools=("write_file",))

    told = shell("pending", "one.1.0.1").stdout.replace("\n", "")
    none = shell("pending", "one.1.0.2")

    assert 2 == "".join(told.split()).count("Ada" * 200)
    assert 2 == none.exit_code
    assert "`cueline pending` lists what does" in none.output


def test_always_says_what_it_covers():
    writes = cueline_tool("write_file")
    runs = cueline_tool("run_command")

    assert "write_file at a.md, whatever else is given" == always_text(writes, {"path": "a.md"})
    assert "run_command with exactly these arguments" == always_text(runs, {"command": "ls"})


# D36, 000-067: a hook is a channel.
def test_a_hook_is_run_with_the_question(shell):
    hook = '[[policy.hooks]]\non = "asked"\ncommand = ["sh", "-c", "cat > news.json"]\n'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=hook)

    done = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")

    news = json.loads((shell.folder / "news.json").read_text())
    assert done.exit_code == 3
    assert ("asked", "one.1.0.1", "delete_file") == (news["on"], news["approval"], news["tool"])
    assert "PeopleNotified" in shell.types("one")
    assert "SessionWaiting" == shell.types("one")[-1]


def test_a_hook_gets_all_that_would_run_and_a_cut_summary_says_how_much_is_left_out(shell):
    content = "a" * 300 + "\n; rm -rf"
    arguments = f'{{ path = "list.txt", content = {json.dumps(content)} }}'
    script = f'[[reply]]\ncalls = [{{ name = "write_file", arguments = {arguments} }}]\n'
    hook = '[[policy.hooks]]\non = "asked"\ncommand = ["sh", "-c", "cat > news.json"]\n'
    policy = f'[policy]\napproval = "all_writes"\n{hook}'

    start(shell, script, policy, tools=("write_file",))

    news = json.loads((shell.folder / "news.json").read_text())
    (waiting,) = shell.json("pending")
    assert {"path": "list.txt", "content": content} == news["arguments"]
    assert (waiting["preview"], waiting["digest"]) == (news["preview"], news["digest"])
    assert f"+{content[-8:]}" in news["preview"]
    cut = f'"{"a" * 199}… 112 more characters'
    assert f'write_file(path="list.txt", content={cut})' == news["summary"]


# I9: where a preview was shown, what was there before is part of what was granted.
def test_a_file_that_changed_since_it_was_shown_is_asked_about_again(shell):
    start(shell, WRITES, '[policy]\napproval = "all_writes"\n', tools=("write_file",))
    shell("approve", "one.1.0.1")
    file = shell.folder / "work" / "list.txt"
    file.write_text("Ada\nCarl\n")

    done = shell("resume", "one", "--inline")

    (waiting,) = shell.json("pending")
    assert (3, "one.1.0.2", "Ada\nCarl\n") == (done.exit_code, waiting["id"], file.read_text())
    assert "-Carl" in waiting["preview"]
    shell("approve", "one.1.0.2")
    assert 0 == shell("resume", "one", "--inline").exit_code
    assert "Ada\nBob\n" == file.read_text()
