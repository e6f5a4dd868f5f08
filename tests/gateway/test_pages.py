"""The pages over HTTP: what they show, what they escape, and what they cost."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

import cueline
from cueline.client.tokens import issue_token
from cueline.gateway.pages.export import page_of
from cueline.gateway.pages.page import STATIC
from cueline.gateway.pages.timeline import Bar, timeline
from cueline.tools.todo import todo
from tests.gateway.conftest import served
from tests.gateway.test_api import PAYS, TALKS, pay
from tests.scripted import HELLO, scripted

HOSTILE = "<script>alert(1)</script> **bold** <img src=x onerror=alert(2)> [x](javascript:alert(3))"
HTML = {"Accept": "text/html"}
BREAKS = """
reply = [{ text = "I look first.", calls = [{ name = "breaks", arguments = { path = "a<b" } }] }]
"""
LISTS = """
[[reply]]
text = "First a list."
[[reply.calls]]
name = "todo"
[reply.calls.arguments]
items = [{ text = "look", status = "done" }, { text = "<b>act</b>" }]
[[reply]]
text = "Done."
"""


@cueline.tool
async def breaks(path: str) -> str:
    """Break."""
    raise ValueError("the disk is <gone>")


@cueline.tool(read_only=True)
async def look(amount: int) -> str:
    """Look."""
    return f"seen {amount}"


async def page(http, path):
    answer = await http.get(path, headers=HTML)
    assert 200 == answer.status_code, answer.text
    return answer.text


async def test_hostile_text_is_shown_and_not_run(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(BREAKS, breaks), HOSTILE, id="one")).result()
        whole = page_of(await runtime.history("one"))
        shown = [await page(http, path) for path in ("/", "/sessions/one", "/audit", "/costs")]
        shown += [await page(http, "/sessions/one/at/4"), whole]

    assert "&lt;script&gt;alert(1)" in shown[0]
    assert "<strong>bold</strong>" in shown[1]
    for text in shown:
        assert not re.search(r"<script>alert|<img|href=\"javascript:|<gone>|a<b", text)


async def test_no_page_allows_code_or_files_of_others(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one")).result()
        answers = [await http.get(path, headers=HTML) for path in ("/", "/sessions/one", "/login")]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "no-store" == answer.headers["cache-control"]
        assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)
        assert not re.search(r" (on\w+|style)=\"", answer.text)
    nonces = {
        re.search("nonce-([^']+)", each.headers["content-security-policy"])[1] for each in answers
    }
    assert len(answers) == len(nonces)


def test_the_code_of_others_is_as_it_was_published():
    told = dict(line.split()[::-1] for line in (STATIC / "SHA256SUMS").read_text().splitlines())

    assert told == {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in STATIC.glob("*.js")
    }
    assert "Zero-Clause BSD" in (STATIC / "htmx.LICENSE").read_text()


async def test_why_a_session_failed_and_what_it_cost_stands_at_the_top(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(BREAKS, breaks), "Go", id="one")).result()
        shown = await page(http, "/sessions/one")
    head = shown[: shown.index('class="two"')]

    assert "failed" in head
    assert re.search(r'<p class="why bad">[^<]*script', head)
    assert "<dt>Cost</dt><dd>$0</dd>" in head


async def test_a_session_is_shown_as_it_was(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        session = runtime.session("one")
        await session.send("And?")
        await session.result()
        early, late = [await page(http, f"/sessions/one/at/{n}") for n in (4, 10)]
        missing = await http.get("/sessions/one/at/99", headers=HTML)
        nothing = await http.get("/sessions/none", headers=HTML)

    assert ("Good evening." in early, "Good night." in early) == (True, False)
    assert "Good night." in late
    assert (409, 404) == (missing.status_code, nothing.status_code)
    assert "no version 99" in missing.text
    assert "there is no such session" in nothing.text


async def test_the_list_of_what_is_to_do_is_a_checklist(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(LISTS, todo), "Go", id="one")).result()
        text = await page(http, "/sessions/one")

    assert "<pre>☑ look\n☐ &lt;b&gt;act&lt;/b&gt;</pre>" in text


async def test_the_filters_keep_what_failed_and_what_was_asked(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(BREAKS, breaks), "Go", id="one")).result()
        await (await runtime.start(scripted(PAYS, pay), "Go", id="two")).result()
        failed, asked = (
            await page(http, "/sessions/one?only=failed"),
            await page(http, "/sessions/two?only=asked"),
        )
        found, none = await page(http, "/?text=TWO"), await page(http, "/?min_cost=5")
        wrong = await http.get("/?min_cost=x", headers=HTML)
        events = [
            await page(http, f"/audit?text=FIRST&since=2020-01-01&until={until}&correlation=one")
            for until in ("2099-01-01T00:00", "2020-01-02T00:00")
        ]
        no_time = await http.get("/audit?since=x", headers=HTML)

    assert "the disk is" in failed
    assert "I look first." not in failed
    assert "may it run?" in asked
    assert ("/sessions/two" in found, "/sessions/one" in found) == (True, False)
    assert "No session fits." in none
    assert (422, True) == (wrong.status_code, "&#39;x&#39; is no number" in wrong.text)
    assert [True, False] == ["ModelReplied" in each for each in events]
    assert (422, True) == (no_time.status_code, "is no time like" in no_time.text)


async def test_a_long_session_opens_at_its_end_and_goes_back_by_parts(log):
    steps = ", ".join(
        f'{{ text = "step {n}", calls = [{{ name = "look", arguments = {{ amount = {n} }} }}] }}'
        for n in range(120)
    )

    agent = scripted(f'reply = [{steps}, {{ text = "Done." }}]', look)
    limits = agent.limits.model_copy(update={"max_turns": 1000})
    async with served(log) as (runtime, http):
        await (
            await runtime.start(agent.model_copy(update={"limits": limits}), "Go", id="one")
        ).result()
        shown = [await page(http, "/sessions/one")]
        while (more := re.search(r"/earlier\?before=(\d+)", shown[-1])) is not None:
            shown.append(await page(http, f"/sessions/one/earlier?before={more[1]}"))
    seen = [int(each) for text in shown for each in re.findall(r'id="v(\d+)"', text)]

    assert "step 119" in shown[0]
    assert "step 0<" not in shown[0]
    assert "step 0<" in "".join(shown)
    assert sorted(set(seen)) == sorted(seen)
    assert len(shown) > 2


async def test_what_a_token_may_not_see_or_do_its_pages_do_not_offer_as_done(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="one")).result()
        made = await issue_token(runtime, "ada", scopes=["read"])
        headers = {"Authorization": f"Bearer {made.text}", **HTML}
        refused = await http.post("/act/sessions/one/stop", headers=headers, data={"reason": "x"})
        tokens = await http.get("/tokens", headers=headers)
        wrong = await http.post("/act/sessions/one/limits", data={"max_cost": "much"})

    assert (403, True) == (refused.status_code, "needs the scope `send`" in refused.text)
    assert 403 == tokens.status_code
    assert (422, True) == (wrong.status_code, "max_cost" in wrong.text)


async def test_a_session_is_one_file(log):
    async with served(log) as (runtime, _):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="one")).result()
        history = await runtime.history("one")
        whole = page_of(history)

    assert not re.search(r"(src|href)=\"(?!#)", whole)
    assert "default-src 'none'; style-src 'sha256-" in unescape(whole)
    assert history.events[-1][0].hash.hex() in whole
    for version in re.findall(r'href="#v(\d+)"', whole):
        assert int(version) <= history.version


def test_a_long_wait_does_not_hide_the_work():
    began = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)

    def bar(kind, after, until):
        return Bar(
            kind=kind,
            name=kind,
            says=kind,
            version=1,
            began=began + timedelta(seconds=after),
            ended=began + timedelta(seconds=until),
        )

    drawn = timeline(
        [bar("tool", 0, 1), bar("wait", 1, 90_000), bar("tool", 90_000, 90_001)], began, "/v/"
    )
    first, wait, last = [float(each) for each in re.findall(r'width="([\d.]+)"', drawn)]

    assert first == pytest.approx(last, rel=0.05)
    assert first > 4 * wait


def test_a_wait_that_goes_on_is_seen():
    began = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)
    told = {"name": "x", "says": "x", "version": 1}
    work = Bar(kind="tool", began=began, ended=began + timedelta(seconds=1), **told)
    wait = Bar(kind="wait", began=began + timedelta(seconds=1.5), **told)

    drawn = timeline([work, wait], began + timedelta(hours=1), "/v/")
    _, shown = [float(each) for each in re.findall(r'width="([\d.]+)"', drawn)]

    assert shown > 50


def test_the_pages_are_small():
    assert (
        sum(each.stat().st_size for each in STATIC.iterdir() if each.suffix in {".js", ".css"})
        < 70_000
    )
    assert Path(STATIC / "style.css").stat().st_size < 16_000


@pytest.mark.parametrize(
    ("came", "back"),
    [("/sessions/one", True), ("//evil.example", False), ("https://evil.example/x", False)],
)
async def test_an_error_leads_back_to_a_page_of_the_server_only(log, came, back):
    async with served(log) as (_, http):
        at = came if came.startswith("https") else f"{str(http.base_url).rstrip('/')}{came}"
        told = await http.get("/sessions/none", headers={"Referer": at, **HTML})

    assert (404, back) == (told.status_code, ">Back</a>" in told.text)
