"""Who is let in: browsers by a code, strangers slowly."""

from contextlib import asynccontextmanager

import httpx2
import pytest

from cueline.client.tokens import (
    issue_code,
)
from cueline.gateway.rate_limit import RateLimit
from tests.gateway.conftest import served
from tests.gateway.test_api import TALKS


@asynccontextmanager
async def signed_in(runtime, http, **rights):
    """Yield an HTTP client with the cookie of a login, and the code that it used."""
    code = await issue_code(runtime, "ada", **rights)
    async with httpx2.AsyncClient(base_url=http.base_url) as browser:
        shown = await browser.get("/login", params={"code": code.text})
        assert (200, True) == (shown.status_code, code.text in shown.text)
        answer = await browser.post("/login", data={"code": code.text, "next": "/approvals"})
        assert (303, "/approvals") == (answer.status_code, answer.headers["location"])
        yield browser, code


async def test_a_browser_signs_in_once_by_a_code(log):
    async with (
        served(log) as (runtime, http),
        signed_in(runtime, http) as (browser, code),
        httpx2.AsyncClient(base_url=http.base_url) as other,
    ):
        cookie = next(iter(browser.cookies.jar))
        listed = await browser.get("/v1/sessions")
        again = await other.post("/login", data={"code": code.text})
        as_bearer = await other.get(
            "/v1/sessions", headers={"Authorization": f"Bearer {cookie.value}"}
        )
        code_as_bearer = await other.get(
            "/v1/sessions", headers={"Authorization": f"Bearer {code.text}"}
        )
        out = await browser.get("/approvals", headers={"accept": "text/html"})

    assert cookie.has_nonstandard_attr("HttpOnly")
    assert 200 == listed.status_code
    assert (303, True) == (again.status_code, "/login?failed=1" in again.headers["location"])
    assert [401, 401] == [as_bearer.status_code, code_as_bearer.status_code]
    assert 303 != out.status_code


async def test_who_is_not_signed_in_is_sent_to_the_login_and_back(log):
    async with served(log) as (_, http), httpx2.AsyncClient(base_url=http.base_url) as browser:
        page = await browser.get("/sessions/one?at=2", headers={"accept": "text/html"})
        far = await browser.post("/login", data={"code": "x", "next": "//evil.example/"})

    assert (303, "/login?next=/sessions/one?at%3D2") in {
        (page.status_code, page.headers["location"]),
        (page.status_code, page.headers["location"].replace("%2F", "/").replace("%3F", "?")),
    }
    assert "evil" not in far.headers["location"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"x-csrf-token": "wrong"}, 403),
        ({"x-csrf-token": "CSRF", "sec-fetch-site": "cross-site"}, 403),
        ({"x-csrf-token": "CSRF", "sec-fetch-site": "same-site"}, 403),
        ({"x-csrf-token": "CSRF", "sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_a_browser_changes_something_from_a_page_of_the_server_only(log, headers, status):
    from cueline.gateway.guard import csrf_of  # noqa: PLC0415 - only this needs it

    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        async with signed_in(runtime, http) as (browser, _):
            csrf = csrf_of(next(iter(browser.cookies.jar)).value)
            told = {name: csrf if each == "CSRF" else each for name, each in headers.items()}
            said = await browser.post("/v1/sessions/one/pause", headers=told)

    assert status == said.status_code


# API2:2023, API4:2023 unrestricted resource consumption
async def test_guesses_from_one_address_are_slowed_down(log):
    async with served(log) as (_, http):
        said = [
            (await http.get("/v1/sessions", headers={"Authorization": "Bearer guess"}))
            for _ in range(25)
        ]
        known = await http.get("/v1/sessions")

    assert {401, 429} == {each.status_code for each in said}
    assert int(said[-1].headers["retry-after"]) >= 1
    assert 200 == known.status_code


def test_a_bucket_fills_with_time():
    now = [0.0]
    limit = RateLimit(most=2, per_second=0.5, clock=lambda: now[0])

    assert [0, 0, 2] == [limit.take("ada") for _ in range(3)]
    assert 0 == limit.take("lin")
    now[0] = 2.0
    assert [0, 2] == [limit.take("ada") for _ in range(2)]


async def test_a_stranger_sends_little(log):
    async with served(log) as (_, http), httpx2.AsyncClient(base_url=http.base_url) as other:
        login = await other.post("/login", content=b"a=&" * 4000)
        form = await http.post("/act/sessions/one/stop", content=b"a=&" * 100_000)

    assert [413, 413] == [login.status_code, form.status_code]
