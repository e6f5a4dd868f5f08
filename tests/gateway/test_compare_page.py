"""The page that compares two sessions: what it shows, folds, cuts and links to."""

import re
from html import unescape

import pytest

import cueline
from cueline.client.context import acting_for
from cueline.deciders.person import Person
from cueline.tools.files import write_file
from tests.gateway.conftest import served
from tests.gateway.test_api import TALKS
from tests.gateway.test_pages import HTML, look, page
from tests.gateway.test_people import as_
from tests.scripted import HELLO, scripted

HOSTILE = "<script>alert(1)</script>"
WRITES = """
[[reply]]
text = "I write."
calls = [{ name = "write_file", arguments = { path = "notes.md", content = "CONTENT" } }]
[[reply]]
text = "Done."
"""


async def two_writers(runtime, folder, one="alpha\\n<b>", two="beta\\n"):
    """Let sessions `one` and `two` write these contents to `notes.md`, and say the same."""
    for name, content in (("one", one), ("two", two)):
        (folder / name).mkdir()
        script, policy = WRITES.replace("CONTENT", content), cueline.Policy(approval="off")
        agent = scripted(script, write_file, workspace=folder / name, policy=policy)
        await (await runtime.start(agent, "Write", id=name)).result()


def looks(count, said):
    """Return an agent that looks *count* times, and says *said* each time."""
    call = 'calls = [{ name = "look", arguments = { amount = %d } }]'
    steps = ", ".join(f'{{ text = "{said} {n}", {call % n} }}' for n in range(count))
    agent = scripted(f'reply = [{steps}, {{ text = "Done." }}]', look)
    limits = agent.limits.model_copy(update={"max_turns": 1000})
    return agent.model_copy(update={"limits": limits})


async def test_it_shows_what_differs_and_folds_what_is_the_same(log):
    async with served(log) as (runtime, http):
        await two_writers(runtime, log.parent)
        text = await page(http, "/sessions/one/compare?other=two")

    assert "<title>one and two compared · cueline</title>" in text
    assert ["Result and cost", "Said and called", "Files"] == re.findall("<h2>(.*)</h2>", text)
    assert ["2 equal lines", "2 equal lines"] == re.findall("<summary>(.*)</summary>", text)
    assert ["- call write_file", "+ call write_file"] == re.findall(
        r"<strong>([-+] call \w+)", text
    )
    assert "one changed it:" in text
    assert '<span class="added">+&lt;b&gt;</span>' in text
    assert "<code>cueline diff one two</code>" in text


async def test_its_json_has_both_sides(log):
    async with served(log) as (runtime, http):
        await two_writers(runtime, log.parent)
        text = await page(http, "/sessions/one/compare?other=two")
        (twin,) = re.findall(r'<a href="([^"]+)">JSON', text)
        found = (await http.get(twin)).json()

    assert ("one", "two") == (found["a"]["id"], found["b"]["id"])
    assert ["notes.md"] == [each["path"] for each in found["files"]]


async def test_a_fork_leads_to_the_comparison_with_its_origin(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one")).result()
        await (await runtime.fork("one", at=2, id="two", goal=HOSTILE)).result()
        shown = await page(http, "/sessions/two")
        (link,) = re.findall(r'href="([^"]+)">compare with its origin', shown)
        text = await page(http, unescape(link))

    assert "/sessions/one/compare?other=two" == unescape(link)
    assert "equal line" in text
    assert "<strong>+ user" in text
    assert "&lt;script&gt;alert(1)" in text
    assert HOSTILE not in text


async def test_a_session_does_not_differ_from_itself(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one")).result()
        text = await page(http, "/sessions/one/compare?other=one")

    assert ("Nothing differs." in text, "No file differs." in text) == (True, True)


async def test_an_unknown_session_is_not_found_and_named(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one")).result()
        answers = [
            await http.get(path, headers=HTML)
            for path in ("/sessions/one/compare?other=three", "/sessions/three/compare?other=one")
        ]

    assert [404, 404] == [each.status_code for each in answers]
    assert all("three: there is no such session" in each.text for each in answers)


async def test_a_session_of_another_tenant_is_not_found(log):
    async with served(log) as (runtime, http):
        acme = acting_for(runtime, Person("ada", "acme"))
        for name in ("ours", "more"):
            await (await acme.start(HELLO, "Go", id=name)).result()
        await (await runtime.start(HELLO, "Go", id="theirs")).result()
        async with await as_(runtime, http, scopes=["read"], tenant="acme") as ada:
            own = await page(ada, "/sessions/acme:ours/compare?other=more")
            (twin,) = re.findall(r'<a href="([^"]+)">JSON', own)
            found = await ada.get(twin)
            hidden = await ada.get("/sessions/ours/compare?other=theirs", headers=HTML)
            unknown = await ada.get("/sessions/ours/compare?other=nobodys", headers=HTML)

    assert ("acme/ours", "acme/more") == (found.json()["a"]["id"], found.json()["b"]["id"])
    assert [404, 404] == [hidden.status_code, unknown.status_code]
    assert "theirs: there is no such session" in hidden.text


@pytest.mark.parametrize("said", ["&" * 300, "@@ " + "\\n+" * 150])
async def test_a_long_comparison_is_cut_and_says_so(log, said):
    one, two = "one" * 30, "two" * 30
    async with served(log) as (runtime, http):
        for name in (one, two):
            agent = looks(150, f"{said} {name}")
            await (await runtime.start(agent, "Go", id=name)).result()
        text = await page(http, f"/sessions/{one}/compare?other={two}")
        found = (await http.get(f"/v1/sessions/{one}/diff/{two}")).json()["transcript"]

    folded = [int(each) for each in re.findall(r"<summary>(\d+) equal lines?</summary>", text)]
    beside = len(re.findall(r"<strong>[-+] ", text))
    (left,) = re.findall(r"Cut here: (\d+) more lines are not shown", text)
    assert len(found) == sum(folded) + beside + int(left)
    assert 20_000 < len(text.encode()) < 100_000


async def test_a_long_equal_past_is_folded_to_its_last_lines(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(looks(100, "step"), "Go", id="one")).result()
        await (await runtime.start(looks(101, "step"), "Go", id="two")).result()
        text = await page(http, "/sessions/one/compare?other=two")

    assert "<summary>301 equal lines</summary>" in text
    assert "The last 10 of them:" in text
    assert ("step 99" in text, "step 9<" in text, "step 100" in text) == (True, False, True)


async def test_large_changes_of_files_are_cut_and_say_so(log):
    async with served(log) as (runtime, http):
        contents = ("\\n".join(f"{name} {n}" for n in range(300)) for name in ("one", "two"))
        await two_writers(runtime, log.parent, *contents)
        text = await page(http, "/sessions/one/compare?other=two")

    assert 2 == len(re.findall(r"… \d+ more lines", text))
    assert len(text.encode()) < 100_000
