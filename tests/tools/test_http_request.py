"""HTTP from tools: what is sent, what comes back, and what stays secret."""

import socket
from threading import Thread

import pytest

from cueline.events.message import IMAGE_LIMIT
from cueline.tools.http_request import http_request
from tests.tools.http_server import serving

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def test_json_comes_as_json_with_the_status_and_some_headers(answer):
    headers = {
        "Content-Type": "application/json",
        "ETag": '"1"',
        "Set-Cookie": "a=b",
        "X-RateLimit-Left": "3",
    }
    with serving(item=(404, headers, b'{"error": [1, null]}')) as server:
        told = await answer(f"{server.url}/item")

    assert {
        "status": 404,
        "url": f"{server.url}/item",
        "headers": {"content-type": "application/json", "etag": '"1"', "x-ratelimit-left": "3"},
        "body": {"error": [1, None]},
    } == told


async def test_a_long_body_is_cut_and_said_to_be(answer):
    with serving(
        long=(200, {"Content-Type": "application/json"}, b'["' + b"x" * 5_000 + b'"]')
    ) as server:
        told = await answer(f"{server.url}/long", max_bytes=1_000)

    assert '["' + "x" * 998 == told["body"].rstrip("\ufdd0")
    assert "the body has 5,004 bytes, of which these are the first 1,000" == told["cut"]


async def test_other_encodings_are_read(answer):
    latin = {"Content-Type": "text/plain; charset=iso-8859-1"}
    with serving(old=(200, latin, "Zürich".encode("latin-1"))) as server:
        told = await answer(f"{server.url}/old")

    assert "Zürich" == told["body"]


@pytest.mark.parametrize("kind", ["application/zip", "text/plain", "text/plain; charset=base64"])
async def test_what_is_binary_is_refused_with_its_size_and_type(kind, fetch, failure):
    with serving(file=(200, {"Content-Type": kind}, b"PK\0\x01" * 100)) as server:
        failed = await failure(fetch(f"{server.url}/file", private=("127.0.0.1",)))

    assert f"400 bytes of {kind.partition(';')[0]}" in failed.message


async def test_an_image_is_an_image(fetch):
    with serving(icon=(200, {"Content-Type": "image/png"}, PNG)) as server:
        output = await fetch(f"{server.url}/icon", private=("127.0.0.1",))

    assert ("image/png", PNG) == (output.media_type, output.content)


async def test_an_image_that_is_too_large_is_refused(fetch, failure):
    large = PNG + b"\0" * IMAGE_LIMIT
    with serving(icon=(200, {"Content-Type": "image/png"}, large)) as server:
        failed = await failure(fetch(f"{server.url}/icon", private=("127.0.0.1",)))

    assert f"{len(large):,} bytes of image/png" in failed.message


async def test_a_request_sends_its_body(answer):
    with serving(item=(201, {}, b"made")) as server:
        sent = {"tool": http_request, "method": "PUT"}
        await answer(f"{server.url}/item", body={"a": [1]}, **sent)
        await answer(
            f"{server.url}/item", body="a text", headers={"content-type": "text/csv"}, **sent
        )

    (_, _, first, json_body), (_, _, second, text_body) = server.asked
    assert ("application/json", b'{"a": [1]}') == (first["Content-Type"], json_body)
    assert ("text/csv", b"a text") == (second["content-type"], text_body)


@pytest.mark.parametrize(
    ("status", "then"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
)
async def test_redirects_are_followed_as_browsers_do(status, then, answer):
    with serving(a=(status, {"Location": "/b?c=d"}, b"")) as server:
        server.answers["/b?c=d"] = (200, {}, b"there")
        told = await answer(f"{server.url}/a", tool=http_request, body="x")

    assert (f"{server.url}/b?c=d", "there") == (told["url"], told["body"])
    assert ("POST", then) == tuple(method for method, *_ in server.asked)
    assert (b"x" if then == "POST" else b"") == server.asked[1][3]


async def test_more_than_five_redirects_are_not_followed(fetch, failure):
    with serving(a=(302, {"Location": "/a"}, b"")) as server:
        failed = await failure(fetch(f"{server.url}/a", private=("127.0.0.1",)))

    assert "redirected more than 5 times" in failed.message
    assert 6 == len(server.asked)


async def test_no_proxy_and_no_password_of_the_environment_is_used(answer, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hidden\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with serving(hello=(200, {}, b"hello")) as server:
        told = await answer(f"{server.url}/hello")

    assert "hello" == told["body"]
    assert "Authorization" not in server.asked[0][2]


SECRET = "sk-0123456789abcdef"
WITH_SECRET = {"headers": {"Authorization": "Bearer $SHOP_TOKEN"}, "environment": ("SHOP_TOKEN",)}


async def test_a_header_gets_the_value_of_a_variable_and_the_result_does_not(answer, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with serving(echo=(200, {"Content-Type": "application/json"}, "the headers")) as server:
        told = await answer(f"{server.url}/echo", **WITH_SECRET)

    assert f"Bearer {SECRET}" == server.asked[0][2]["Authorization"]
    assert "Bearer [redacted]" == told["body"]["Authorization"]


async def test_a_secret_at_the_cut_of_a_body_is_not_in_the_result(answer, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with serving(echo=(200, {}, b"you sent " + SECRET.encode() * 2)) as server:
        told = await answer(f"{server.url}/echo", max_bytes=20, **WITH_SECRET)

    assert "you sent [redacted]" == told["body"].rstrip("\ufdd0")


async def test_a_variable_that_the_agent_does_not_list_is_not_sent(fetch, failure, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with serving() as server:
        how = {"private": ("127.0.0.1",), "headers": {"X-Note": "$SHOP_TOKEN"}}
        failed = await failure(fetch(f"{server.url}/x", **how))

        assert "the agent's file does not list SHOP_TOKEN in `environment`" in failed.message
        assert [] == server.asked


@pytest.mark.parametrize("header", ["Host", "content-length", "Transfer-Encoding"])
async def test_a_header_that_would_change_the_meaning_is_refused(header, fetch, failure):
    failed = await failure(fetch("https://example.com/", headers={header: "x"}))

    assert f"the header {header!r} cannot be set" == failed.message


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb"])
async def test_no_value_of_a_header_begins_another_header(value, fetch, failure):
    with serving(x=(200, {}, b"")) as server:
        how = {"private": ("127.0.0.1",), "headers": {"X-Note": value}}
        await failure(fetch(f"{server.url}/x", **how))

        assert [] == server.asked


async def test_credentials_are_not_sent_on_to_another_host(answer, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    headers = {"X-Note": "$SHOP_TOKEN", "Authorization": "Basic x", "Cookie": "a=b", "X-Plain": "c"}
    with serving(a=(302, {"Location": "/b"}, b"")) as first, serving(c=(200, {}, b"")) as other:
        first.answers["/b"] = (307, {"Location": f"{other.url}/c"}, b"")
        how = {"headers": headers, "environment": ("SHOP_TOKEN",)}
        await answer(f"{first.url}/a", **how)

    names = {"X-Note", "Authorization", "Cookie", "X-Plain"}
    assert [names, names] == [names & asked[2].keys() for asked in first.asked]
    assert [{"X-Plain"}] == [names & asked[2].keys() for asked in other.asked]


async def test_a_request_without_an_answer_may_have_had_effects(fetch, failure):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up():
            listener.accept()[0].close()

        Thread(target=hang_up, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        failed = await failure(fetch(url, tool=http_request, private=("127.0.0.1",)))

    assert "network" == failed.kind
    assert failed.message.endswith("; the request may have had effects")
