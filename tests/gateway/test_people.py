"""Tokens, people and tenants: who is let in, what they may do, and what they see."""

from contextlib import asynccontextmanager

import httpx2
import pytest

from cueline.client.client import open_client
from cueline.client.context import acting_for
from cueline.client.tokens import (
    TokenBook,
    issue_code,
    issue_token,
    revoke_token,
    rotate_token,
    tokens,
)
from cueline.deciders.person import Person
from cueline.errors import ConfigError, ForbiddenError, UnknownSessionError
from cueline.gateway.rate_limit import RateLimit
from tests.gateway.conftest import served
from tests.gateway.test_api import PAYS, TALKS, pay
from tests.gateway.test_events import received
from tests.scripted import HELLO, scripted


async def as_(runtime, http, person="ada", **rights):
    """Return an HTTP client with a new token of *person*."""
    made = await issue_token(runtime, person, **rights)
    headers = {"Authorization": f"Bearer {made.text}"}
    return httpx2.AsyncClient(base_url=http.base_url, headers=headers)


async def test_a_request_is_recorded_in_the_name_of_the_token(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(TALKS, "Go", id="one", open=True)
        await session.result()
        async with await as_(runtime, http, scopes=["send"]) as ada:
            sent = await ada.post("/v1/sessions/one/messages", json={"text": "And?"})
        rows = (await runtime.audit(session="one", actor="user:ada")).rows

    assert 200 == sent.status_code
    assert ["MessageSent"] == [each.type for each in rows]


# 002-014, C17
async def test_the_name_on_an_approval_is_that_of_the_token(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        (asked,) = await runtime.pending()
        path = f"/v1/approvals/{asked.id}/decision"
        async with await as_(runtime, http, scopes=["approve:pay"]) as ada:
            named = await ada.post(path, json={"verdict": "grant", "by": "lin"})
            given = await ada.post(path, json={"verdict": "grant"})

    assert (422, "by") == (named.status_code, named.json()["field"])
    assert (200, "ada") == (given.status_code, given.json()["by"])


@pytest.mark.parametrize(
    ("scopes", "method", "path", "body", "needs"),
    [
        (["read"], "POST", "/v1/sessions/one/messages", {"text": "x"}, "send"),
        (["read"], "POST", "/v1/sessions/one/stop", {}, "send"),
        (["read"], "POST", "/v1/sessions/one/fork", {"at": 1}, "send"),
        (["approve"], "POST", "/v1/sessions/one/resume", {}, "send"),
        (["send"], "POST", "/v1/approvals/one.1.0.1/decision", {"verdict": "grant"}, "approve:pay"),
        (
            ["approve:refund"],
            "POST",
            "/v1/approvals/one.1.0.1/decision",
            {"verdict": "deny"},
            "approve:pay",
        ),
        (["send", "approve"], "POST", "/v1/fleet/scale", {"hosts": 2}, "admin"),
        (
            ["send", "approve"],
            "POST",
            "/v1/tokens",
            {"person": "eve", "scopes": ["admin"]},
            "admin",
        ),
        (["send", "approve"], "GET", "/v1/tokens", None, "admin"),
        (["send"], "POST", "/v1/breakers/x/reset", {}, "admin"),
        # A model's address would get the provider's key; a script is a file of the server.
        (
            ["send"],
            "POST",
            "/v1/sessions/one/model",
            {"model": {"provider": "ollama", "model": "x", "base_url": "http://evil.example"}},
            "admin",
        ),
        (
            ["send"],
            "POST",
            "/v1/sessions/one/model",
            {"model": {"provider": "", "model": "scripted//etc/passwd"}},
            "admin",
        ),
    ],
)
async def test_a_token_without_the_scope_is_refused_and_nothing_is_recorded(  # noqa: PLR0917
    log, scopes, method, path, body, needs
):
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        async with await as_(runtime, http, scopes=scopes) as ada:
            before = await runtime.log.store.last_position()
            refused = await ada.request(method, path, json=body)
            after = await runtime.log.store.last_position()

    assert (403, "ForbiddenError", needs) == (
        refused.status_code,
        refused.json()["type"],
        refused.json()["scope"],
    )
    assert before == after


# C46
async def test_a_session_of_another_tenant_does_not_exist(log):
    async with served(log) as (runtime, http):
        acme = acting_for(runtime, Person("ada", "acme"))
        await (await acme.start(scripted(PAYS, pay), "Go", id="ours")).result()
        await (await runtime.start(scripted(PAYS, pay), "Go", id="theirs")).result()
        whole = await runtime.pending()
        rights = {"scopes": ["send", "approve"], "tenant": "acme"}
        async with await as_(runtime, http, **rights) as ada:
            listed = (await ada.get("/v1/sessions")).json()["rows"]
            asked = (await ada.get("/v1/approvals")).json()["rows"]
            audit = (await ada.get("/v1/audit")).json()["rows"]
            found = [
                (await ada.get(f"/v1/sessions/{name}")).status_code
                for name in ("ours", "acme:ours", "our", "theirs", "default:theirs", "the")
            ]
            events = await ada.get("/v1/sessions/default:theirs/events")
            sent = await ada.post("/v1/sessions/default:theirs/stop", json={})
            other = [each for each in whole if each.session != "acme/ours"]
            decided = await ada.post(
                f"/v1/approvals/default:{other[0].id}/decision", json={"verdict": "grant"}
            )
            foreign = [
                (await ada.get(path)).status_code
                for path in ("/v1/fleet", "/v1/status", "/v1/verify")
            ]
            costs = (await ada.get("/v1/costs")).json()["total"]["sessions"]
            live = await received(ada, "/v1/events", most=3)
            pages = [
                (await ada.get(path, headers={"Accept": "text/html"})).status_code
                for path in (
                    "/sessions/default:theirs",
                    "/sessions/default:theirs/at/2",
                    "/sessions/default:theirs/versions/2",
                    "/sessions/default:theirs/earlier?before=3",
                    "/sessions/default:theirs/live?after=0",
                    "/sessions/acme:ours/compare?other=default/theirs",
                )
            ]
            acted = await ada.post("/act/sessions/default:theirs/stop")
            shown = (await ada.get("/", headers={"Accept": "text/html"})).text

    assert ["acme/ours"] == [each["id"] for each in listed]
    assert ["acme/ours"] == [each["session"] for each in asked]
    assert {"acme/ours"} == {each["session"] for each in audit}
    assert [200, 200, 200, 404, 404, 404] == found
    assert [404, 404, 404] == [events.status_code, sent.status_code, decided.status_code]
    assert [403, 403, 403] == foreign
    assert 1 == costs
    assert {"session-acme/ours"} == {each["stream"] for _, _, each in live}
    assert ([404] * 6, 404) == (pages, acted.status_code)
    assert ("acme:ours" in shown, "theirs" in shown) == (True, False)


async def test_the_limits_of_a_person_hold_in_python_too(log):
    async with served(log) as (runtime, _):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        reads = acting_for(runtime, Person("ada", scopes=frozenset({"read"})))
        acme = acting_for(runtime, Person("ada", "acme", frozenset({"send"})))

        with pytest.raises(ForbiddenError, match="`send`"):
            await reads.send("one", "And?")
        with pytest.raises(ForbiddenError, match="`admin`"):
            await reads.start(HELLO, "Go")
        with pytest.raises(UnknownSessionError):
            await acme.send("session-default/one", "And?")
        with pytest.raises(UnknownSessionError):
            await runtime.session("one").send("And?") and await acme.show("one")


async def test_a_token_is_never_in_the_log(log):
    async with served(log) as (runtime, _):
        made = await issue_token(runtime, "ada")
        code = await issue_code(runtime, "ada")
    held = b"".join(each.read_bytes() for each in log.parent.iterdir() if each.is_file())

    for text in (made.text, code.text):
        assert text.encode() not in held
        assert text.split("_")[2].encode() not in held


async def test_a_token_ends_by_time_by_hand_and_an_hour_after_it_was_replaced(log):
    async with served(log) as (runtime, http):
        old = await issue_token(runtime, "ada", scopes=["read"])
        new = await rotate_token(runtime, old.id)
        gone = await issue_token(runtime, "ada", scopes=["read"])
        await revoke_token(runtime, gone.id)
        said = [
            await http.get("/v1/sessions", headers={"Authorization": f"Bearer {text}"})
            for text in (old.text, new.text, gone.text, new.text[:-1], f"{new.text}x", "cue_", "x")
        ]
        listed = {each.id: each.status for each in await tokens(runtime)}

    assert [200, 200, 401, 401, 401, 401, 401] == [each.status_code for each in said]
    assert {old.id: "valid", new.id: "valid", gone.id: "revoked"} == listed


@pytest.mark.parametrize(
    ("asked", "subject"),
    [
        ({"person": "a b"}, "person"),
        ({"person": "user:ada"}, "person"),
        ({"scopes": ["odd"]}, "scope"),
        ({"scopes": []}, "scope"),
        ({"scopes": ["admin"], "tenant": "acme"}, "scope"),
        ({"days": 0}, "days"),
        ({"days": 1e9}, "days"),
    ],
)
async def test_a_wrong_token_is_not_issued(log, asked, subject):
    async with served(log) as (runtime, _):
        with pytest.raises(ConfigError) as error:
            await issue_token(runtime, **{"person": "ada", **asked})

        assert (subject, []) == (error.value.subject, await tokens(runtime))


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


async def test_another_process_that_revokes_is_noticed_at_once(log):
    async with served(log) as (runtime, http):
        made = await issue_token(runtime, "ada")
        headers = {"Authorization": f"Bearer {made.text}"}
        before = await http.get("/v1/sessions", headers=headers)
        async with open_client(log) as other:
            await revoke_token(other, made.id)
        after = await http.get("/v1/sessions", headers=headers)

        assert await TokenBook(runtime.log).issued_to(made.text) is None
    assert [200, 401] == [before.status_code, after.status_code]


async def test_a_replaced_token_can_be_ended_at_once(log):
    async with served(log) as (runtime, http):
        old = await issue_token(runtime, "ada", scopes=["read"])
        await rotate_token(runtime, old.id)
        await revoke_token(runtime, old.id)
        said = await http.get("/v1/sessions", headers={"Authorization": f"Bearer {old.text}"})
        for days in (-1, 0, 1e9):
            with pytest.raises(ConfigError, match="days"):
                await rotate_token(runtime, old.id, days=days)

    assert 401 == said.status_code


async def test_a_stream_ends_with_its_token(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(TALKS, "Go", id="one", open=True)
        await session.result()
        made = await issue_token(runtime, "ada", scopes=["read"])
        headers = {"Authorization": f"Bearer {made.text}"}
        async with http.stream("GET", "/v1/events", headers=headers) as answer:
            lines = answer.aiter_lines()
            await anext(lines)
            await revoke_token(runtime, made.id)
            await runtime.log.clock.sleep(1)
            await session.send("a secret")
            rest = [line async for line in lines]

    assert "a secret" not in "".join(rest)


async def test_a_stranger_sends_little(log):
    async with served(log) as (_, http), httpx2.AsyncClient(base_url=http.base_url) as other:
        login = await other.post("/login", content=b"a=&" * 4000)
        form = await http.post("/act/sessions/one/stop", content=b"a=&" * 100_000)

    assert [413, 413] == [login.status_code, form.status_code]


async def test_who_only_reads_can_reject_nothing(log):
    async with served(log) as (runtime, _):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        reads = acting_for(runtime, Person("ada", scopes=frozenset({"read"})))
        proposed = await reads.propose("pause", {"session": "one"})

        with pytest.raises(ForbiddenError, match="`send`"):
            await reads.reject_proposal(proposed.id)
