"""The pages in Chromium: they are live, safe, and can be used by everybody, at each width."""

import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from cueline.client.tokens import issue_code
from tests.gateway.conftest import TOKEN, served
from tests.gateway.test_api import PAID, PAYS, TALKS, pay
from tests.gateway.test_compare_page import two_writers
from tests.scripted import scripted

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).with_name("browser") / "node_modules/axe-core/axe.min.js"
PAGES = (
    "/",
    "/approvals",
    "/approvals/asks.1.0.1",
    "/runs",
    "/costs",
    "/fleet",
    "/breakers",
    "/audit",
    "/start",
    "/tokens",
    "/sessions/asks",
    "/sessions/talk",
    "/sessions/talk/at/3",
    "/sessions/talk/versions/3",
    "/sessions/talk/compare?other=asks",
)
HOSTILE = '<script>document.title = "taken"</script><img src=x onerror="document.title=1">'
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


@asynccontextmanager
async def opened(http, **looks):
    """Yield a page of a browser that is signed in by the token, and what it complained of."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = await browser.new_context(base_url=str(http.base_url), **looks)
        page, complaints = await context.new_page(), []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page, complaints
        await browser.close()


BEARER = {"extra_http_headers": {"Authorization": f"Bearer {TOKEN}"}}


async def with_sessions(runtime):
    await (await runtime.start(scripted(PAYS, pay), HOSTILE, id="asks")).result()
    await (await runtime.start(TALKS, "Go", id="talk", open=True)).result()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
async def test_each_page_fits_is_safe_and_can_be_used_by_everybody(log, width, scheme):
    async with served(log) as (runtime, http):
        await with_sessions(runtime)
        looks = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        async with opened(http, **looks, **BEARER) as (page, complaints):
            for path in PAGES:
                answer = await page.goto(path)
                assert 200 == answer.status, path
                assert len(await answer.body()) < 100_000, path
                wide = "document.documentElement.scrollWidth > innerWidth"
                assert not await page.evaluate(wide), path
                assert "taken" not in await page.title()
                if AXE.exists():
                    assert [] == await faults(page), path
            assert [] == complaints


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
async def test_two_sessions_are_compared_by_keyboard(log, width, scheme):
    async with served(log) as (runtime, http):
        await two_writers(runtime, log.parent)
        looks = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        async with opened(http, **looks, **BEARER) as (page, complaints):
            await page.goto("/sessions/one")
            await page.get_by_text("Look back").focus()
            await page.keyboard.press("Enter")
            await page.get_by_label("Compare with").fill("two")
            await page.keyboard.press("Enter")
            await expect(page).to_have_title("one and two compared · cueline")
            await page.locator("summary").first.focus()
            await page.keyboard.press("Enter")
            await expect(page.locator("details").first).to_have_attribute("open", "")

            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            sides = [await each.bounding_box() for each in await page.locator(".item").all()]
            assert (sides[0]["y"] == sides[1]["y"]) == (width > 860)
            if AXE.exists():
                assert [] == await faults(page)
            assert [] == complaints


async def faults(page):
    """Return what keeps somebody from using the page, by axe."""
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run().then(found => JSON.stringify(found.violations))")
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in json.loads(found)
        if each["impact"] in {"serious", "critical"}
    ]


# 002-012, 002-033
async def test_a_person_signs_in_follows_a_session_and_allows_its_call(log):
    async with served(log) as (runtime, http):
        code = (await issue_code(runtime, "ada")).text
        async with opened(http, viewport={"width": 390, "height": 800}) as (page, complaints):
            await page.goto(f"/login?code={code}&next=/sessions/one")
            session = await runtime.start(scripted(PAYS, pay), "Pay", id="one")
            await session.result()
            await page.get_by_role("button", name="Sign in").click()
            await page.get_by_label("Note for the agent").fill("fine")
            await page.get_by_role("button", name="Allow").click()

            await expect(page.locator("#said")).to_have_text("Recorded.")
            await expect(page.locator("#conversation")).to_contain_text("Done.")
            await expect(page.locator(".head .status")).to_have_text("completed")
            assert [] == complaints
        resolved = (await runtime.audit(session="one", type="DecisionGiven")).rows
        inbox = runtime.log.journal().read("inbox-default/one", 1)
        (given,) = [fact async for _, fact in inbox if fact.type == "DecisionGiven"]

    assert ["user:ada"] == [each.actor for each in resolved]
    assert ("fine", None) == (given.note, given.edit)


async def test_a_person_edits_the_arguments_that_are_there(log):
    PAID.clear()
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Pay", id="one")).result()
        async with opened(http, **BEARER) as (page, _):
            await page.goto("/approvals")
            await page.get_by_text("Edit the arguments").click()
            arguments = page.get_by_label("All arguments, as JSON")
            await expect(arguments).to_have_value('{\n  "amount": 3\n}')
            await arguments.fill('{"amount": 5}')
            await page.get_by_role("button", name="Allow").click()
            await expect(page.locator("#said")).to_have_text("Recorded.")
        await runtime.session("one").result()

    assert [5] == PAID


ASKS = """
[[reply]]
calls = [{ name = "ask_user", arguments = { question = "Which?", choices = ["a", "b's"] } }]
[[reply]]
text = "Done."
"""


async def test_a_person_answers_what_a_call_asks(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(ASKS, "ask_user"), "Go", id="one")).result()
        async with opened(http, **BEARER) as (page, complaints):
            await page.goto("/approvals")
            await page.get_by_label("answer").select_option("b's")
            await page.get_by_role("button", name="Answer").click()
            await expect(page.locator("#said")).to_have_text("Recorded.")
            assert [] == complaints
        await runtime.session("one").result()
        events = [fact async for _, fact in runtime.log.journal().read("session-default/one")]

    assert ["b's"] == [fact.output for fact in events if fact.type == "ToolReturned"]


async def test_a_message_is_answered_in_the_open_page(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        async with opened(http, **BEARER) as (page, complaints):
            await page.goto("/sessions/one")
            await page.get_by_label("Message").fill("And now?")
            await page.get_by_role("button", name="Send").click()

            await expect(page.locator("#conversation")).to_contain_text("Good night.")
            assert 1 == await page.get_by_text("Good night.").count()
            assert [] == complaints


async def test_what_is_typed_stays_when_the_list_is_loaded_again(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Pay", id="one")).result()
        async with opened(http, **BEARER) as (page, _):
            await page.goto("/approvals")
            await page.get_by_label("Note for the agent").fill("not yet read")
            await (await runtime.start(scripted(PAYS, pay), "Pay", id="two")).result()

            await expect(page.locator(".question")).to_have_count(2)
            noted = page.locator("#ask-one-1-0-1").get_by_label("Note for the agent")
            await expect(noted).to_have_value("not yet read")
