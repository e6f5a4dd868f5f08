"""The OpenAPI document: what it promises holds for any request that is made from it."""

import asyncio
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from cueline.gateway.routes import ROUTES
from tests.gateway.conftest import TOKEN, served
from tests.gateway.reference import PAGE, page
from tests.gateway.test_api import PAYS, TALKS, pay
from tests.scripted import scripted

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
"""All but those that expect the schema to say everything: a name or a number may be unknown."""


async def described(http):
    return (await http.get("/v1/openapi.json")).json()


async def test_each_answer_is_as_it_is_described(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="asks")).result()
        await (await runtime.start(TALKS, "Go", id="one", open=True, labels={"a": "b"})).result()
        told = await described(http)
        checked = []
        for route in ROUTES:
            path = route.path.replace("{session}", "one").replace("{other}", "asks")
            path += "?query=SELECT 1" if path.endswith("/sql") else ""
            if route.method == "GET" and route.path not in {
                "/sessions/{session}/workflow",
                "/sessions/{session}/rerun",
            }:
                answer = await http.get(f"/v1{path}")
                assert 200 == answer.status_code, (path, answer.text)
                schema = told["paths"][f"/v1{route.path}"]["get"]["responses"]["200"]["content"]
                whole = schema["application/json"]["schema"] | {"components": told["components"]}
                jsonschema_rs.validate(whole, answer.json())
                checked.append(path)

    assert len(checked) > 12


# API9:2023 improper inventory management
def test_the_page_of_the_api_is_made_from_its_table():
    assert page() == PAGE.read_text(), "run `python -m tests.gateway.reference`"


async def test_the_same_answer_is_not_sent_twice(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        first = await http.get("/v1/sessions")
        known = {"If-None-Match": first.headers["etag"]}
        same = await http.get("/v1/sessions", headers=known)
        await runtime.send("one", "And?")
        other = await http.get("/v1/sessions", headers=known)

    assert (304, b"") == (same.status_code, same.content)
    assert (200, True) == (other.status_code, other.headers["etag"] != first.headers["etag"])


@pytest.mark.parametrize(
    ("phases", "examples"),
    [
        pytest.param("fuzzing", "5", id="sample"),
        pytest.param("coverage,fuzzing", "5", id="whole", marks=pytest.mark.long),
    ],
)
async def test_no_request_from_the_document_fails_or_has_an_undescribed_answer(
    log, phases, examples
):
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="asks")).result()
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        asked = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("schemathesis"),
            *("run", f"{http.base_url}/v1/openapi.json", "--no-color", "--seed", "1"),
            *("--header", f"Authorization: Bearer {TOKEN}", "--max-examples", examples),
            # The streams of events have no end.
            *("--exclude-path-regex", "events$", "--phases", phases),
            *("--checks", ",".join(CHECKS), "--generation-database", "none"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=log.parent,
        )
        said, _ = await asked.communicate()

    assert 0 == asked.returncode, said.decode()
