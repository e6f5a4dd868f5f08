"""The hosts that an isolated command reaches by the proxy, and all others."""

import pytest
from pydantic import ValidationError

from cueline.events.agent_parts import Isolation, McpServer
from cueline.isolation.ladder import rung
from cueline.tools.mcp.listing import listed
from cueline.tools.shell import run_command
from cueline.tools.tool import ToolContext
from tests.tools.http_server import serving

pytestmark = pytest.mark.skipif(not rung().program, reason="nothing isolates commands here")
ASK = """\
import os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTP_PROXY"])
with socket.create_connection((proxy.hostname, proxy.port), 20) as peer:
    for request in sys.argv[1:]:
        peer.sendall(request.encode().decode("unicode_escape").encode())
        if request.startswith("CONNECT"):
            print(peer.recv(4096).decode().strip())
    peer.shutdown(socket.SHUT_WR)
    while data := peer.recv(4096):
        print(data.decode(), end="", file=sys.stderr)
"""


@pytest.fixture
def ask(tmp_path):
    """Send requests in an isolated command, on one connection; return all answers."""

    def send(network, *requests):
        isolation = Isolation(network=network)
        context = ToolContext(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            folder=tmp_path,
            isolation=isolation,
        )
        words = " ".join(f"'{each}'" for each in requests)
        command = f"python3 - {words} 2>&1 <<'END'\n{ASK}\nEND"
        return run_command.run({"command": command}, context).content.decode()

    return send


def get(url, *headers):
    lines = [f"GET {url} HTTP/1.1", "Host: other.example", *headers, "", ""]
    return r"\r\n".join(lines)


def connect(place):
    return rf"CONNECT {place} HTTP/1.1\r\n\r\n"


def test_an_allowed_host_answers_a_plain_request(ask):
    with serving(hello=(200, {}, b"hello")) as server:
        said = ask([f"127.0.0.1:{server.port}"], get(f"{server.url}/hello", "Proxy-Secret: a"))

        assert "200 OK" in said
        assert "hello" in said
        (_, path, headers, _) = server.asked[0]
        assert "/hello" == path
        assert f"127.0.0.1:{server.port}" == headers["Host"], "not that of another host"
        assert "close" == headers["Connection"]
        assert "Proxy-Secret" not in headers


def test_an_allowed_host_is_reached_by_a_tunnel(ask):
    with serving(hello=(200, {}, b"hello")) as server:
        place = f"127.0.0.1:{server.port}"
        said = ask([place], connect(place), get("/hello", "Connection: close"))

    assert "200 Connection established" in said
    assert "hello" in said


@pytest.mark.parametrize("request_to", [lambda to: get(f"http://{to}/"), connect])
def test_another_host_is_refused_with_the_reason_and_the_fix(ask, request_to):
    said = ask(["api.example.com"], request_to("evil.example:80"))

    assert said.startswith("HTTP/1.1 403 evil.example:80 is not allowed here")
    body = said.partition("\r\n\r\n")[2] or said
    assert "allowed is api.example.com" in body
    assert '[isolation] network = ["evil.example:80"]' in body


@pytest.mark.parametrize(
    ("rule", "host", "is_allowed"),
    [
        ("a.example", "a.example:443", True),
        ("a.example", "A.Example.:80", True),
        ("a.example", "a.example:22", False),
        ("a.example:22", "a.example:22", True),
        ("a.example:22", "a.example:443", False),
        ("*.a.example", "b.a.example:443", True),
        ("*.a.example", "a.example:443", False),
        ("*.a.example", "bad-a.example:443", False),
        ("a.example", "a.example.evil.example:443", False),
        ("*", "b.a.example:443", True),
    ],
)
def test_a_rule_names_hosts_and_ports(ask, names, rule, host, is_allowed):
    names |= {name: [["10.0.0.7"]] for name in ("a.example", "b.a.example")}

    said = ask([rule], connect(host))

    assert said.startswith("HTTP/1.1 403")
    assert is_allowed == ("is 10.0.0.7, which is no public address" in said)


@pytest.mark.parametrize(
    "host", ["localhost", "2130706433", "0x7f.1", "2852039166", "169.254.169.254", "[::1]", "0"]
)
def test_an_address_that_is_not_public_is_refused_though_all_hosts_are_allowed(ask, host):
    with serving(hello=(200, {}, b"hello")) as server:
        said = ask([f"*:{server.port}"], connect(f"{host}:{server.port}"))

    assert "no public address" in said
    assert said.startswith("HTTP/1.1 403")


def test_the_checked_address_is_connected_to_whatever_the_name_means_next(ask, names):
    with serving(hello=(200, {}, b"the checked one")) as good, serving("127.0.0.2") as bad:
        names["moving.example"] = [["127.0.0.1"], ["127.0.0.2"]]
        rules = [f"moving.example:{good.port}", f"127.0.0.1:{good.port}"]
        url = f"http://moving.example:{good.port}/hello"
        said = ask(rules, get(url))
        again = ask(rules, get(url))

        assert "the checked one" in said
        assert "127.0.0.2, which is no public address" in again
        assert [] == bad.asked


@pytest.mark.parametrize("request_line", ["GET / HTTP/1.1", "CONNECT a HTTP/1.1", "SSH-2.0"])
def test_what_is_no_request_for_a_proxy_is_refused(ask, request_line):
    assert "this is a proxy for http://" in ask(["*"], rf"{request_line}\r\n\r\n")


def test_a_host_that_refuses_connections_is_named(ask):
    with serving() as server:
        place = f"127.0.0.1:{server.port}"

    assert f"502 {place} cannot be reached" in ask([place], connect(place))


def test_an_mcp_server_reaches_the_hosts_of_its_isolation(tmp_path):
    with serving(hello=(200, {}, b"hello")) as server:
        isolation = Isolation(network=[f"127.0.0.1:{server.port}"])
        url = f"http://127.0.0.1:{server.port}/hello"
        command = ("python3", "-c", ASK, get(url))
        one = McpServer(command=command, isolation=isolation)
        said = str(listed({"a": one}, tmp_path)["a"])

    assert "hello" in said


def test_a_command_without_a_list_has_no_proxy(ask):
    assert "KeyError: 'HTTP_PROXY'" in ask(False, get("http://a.example/"))  # noqa: FBT003 - as written


@pytest.mark.parametrize("rule", ["http://a.example", "a.*.example", "a b", "a.example:x", ""])
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(ValidationError, match="is no host; write it as"):
        Isolation(network=[rule])


def test_a_list_of_hosts_needs_isolation():
    with pytest.raises(ValidationError, match="leave `network` out"):
        Isolation(kind="none", network=["a.example"])
