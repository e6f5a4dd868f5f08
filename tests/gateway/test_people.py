"""People and tenants: what each may do, and what each sees."""

import httpx2
import pytest

from cueline.client.context import acting_for
from cueline.client.runtime import open_runtime
from cueline.client.tokens import (
    issue_token,
)
from cueline.deciders.person import Person
from cueline.errors import ForbiddenError, UnknownSessionError
from tests.gateway.conftest import served
from tests.gateway.test_api import PAID, PAYS, TALKS, pay
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


# API3:2023 broken object property level authorization
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


# 002-010: the loop is at the server; a client sends a decision and reads.
async def test_a_decision_lets_a_session_go_on_that_no_process_drives(log):
    PAID.clear()
    async with open_runtime(log, on="inline") as runtime:
        await (await runtime.start(scripted(PAYS, pay), "Go", id="one")).result()
    async with served(log) as (runtime, http):
        (asked,) = await runtime.pending()
        path = f"/v1/approvals/{asked.id}/decision"
        async with await as_(runtime, http, scopes=["approve"]) as ada:
            given = await ada.post(path, json={"verdict": "grant"})
        result = await runtime.session("one").result()

    assert ("here", "completed", [3]) == (given.json()["read_by"], result.status, PAID)


# API5:2023 broken function level authorization, API7:2023 server side request forgery
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
        (["send", "approve"], "POST", "/v1/erase", {"sessions": ["one"]}, "admin"),
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


# API1:2023 broken object level authorization
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


async def test_who_only_reads_can_reject_nothing(log):
    async with served(log) as (runtime, _):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        reads = acting_for(runtime, Person("ada", scopes=frozenset({"read"})))
        proposed = await reads.propose("pause", {"session": "one"})

        with pytest.raises(ForbiddenError, match="`send`"):
            await reads.reject_proposal(proposed.id)
