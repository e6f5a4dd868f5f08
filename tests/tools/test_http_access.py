"""What the HTTP tools may reach: rules for hosts, addresses, and names that change."""

import datetime as dt
import ssl
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError

from cueline.tools.http_access import HttpAccess, is_public
from cueline.tools.http_request import _certificates
from tests.tools.http_server import serving

REFUSED = {
    "http://127.0.0.1/": "127.0.0.1",
    "http://localhost/": "127.0.0.1",
    "http://LOCALHOST./": "127.0.0.1",
    "http://2130706433/": "127.0.0.1",
    "http://0x7f000001/": "127.0.0.1",
    "http://0x7f.1/": "127.0.0.1",
    "http://017700000001/": "127.0.0.1",
    "http://127.1/": "127.0.0.1",
    "http://0/": "0.0.0.0",
    "http://10.1.2.3/": "10.1.2.3",
    "http://172.16.0.1/": "172.16.0.1",
    "http://192.168.1.1/": "192.168.1.1",
    "http://100.100.100.200/": "100.100.100.200",
    "http://169.254.169.254/latest/meta-data": "169.254.169.254",
    "http://2852039166/": "169.254.169.254",
    "http://168.63.129.16/": "168.63.129.16",
    "http://192.0.0.192/": "192.0.0.192",
    "http://224.0.0.1/": "224.0.0.1",
    "http://240.0.0.1/": "240.0.0.1",
    "http://255.255.255.255/": "255.255.255.255",
    "http://198.18.0.1/": "198.18.0.1",
    "http://[::1]/": "::1",
    "http://[::]/": "::",
    "http://[0:0:0:0:0:0:0:1]/": "::1",
    "http://[::ffff:127.0.0.1]/": "127.0.0.1",
    "http://[::ffff:a9fe:a9fe]/": "169.254.169.254",
    "http://[::127.0.0.1]/": "::127.0.0.1",
    "http://[64:ff9b::7f00:1]/": "64:ff9b::7f00:1",
    "http://[64:ff9b::169.254.169.254]/": "64:ff9b::a9fe:a9fe",
    "http://[64:ff9b:1::1]/": "64:ff9b:1::1",
    "http://[2002:7f00:1::]/": "2002:7f00:1::",
    "http://[2001:0:53aa:64c::1]/": "2001:0:53aa:64c::1",
    "http://[fe80::1]/": "fe80::1",
    "http://[fec0::1]/": "fec0::1",
    "http://[fd00:ec2::254]/": "fd00:ec2::254",
    "http://[ff02::1]/": "ff02::1",
    "http://[2001:db8::1]/": "2001:db8::1",
    "http://[4000::1]/": "4000::1",
}


@pytest.mark.parametrize("url", REFUSED)
async def test_an_address_that_is_not_public_is_refused_however_it_is_written(url, fetch, failure):
    failed = await failure(fetch(url))

    assert "is no public address" in failed.message
    assert REFUSED[url].replace("::127.0.0.1", "::7f00:1") in failed.message or (
        "::ffff:" in url and "::ffff:" in failed.message
    )


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "2606:2800:21f::1", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e"],
)
def test_any_other_address_is_public(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://0177.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "//x",
        "http://",
        "http://me:pass@example.com/",
        "http://127.0.0.1:99999/",
        "http://exa mple/",
    ],
)
async def test_what_is_no_address_of_http_is_refused(url, fetch, failure):
    failed = await failure(fetch(url))

    assert failed.kind in {"tool_error", "network"}
    assert "pass@" not in failed.message


@pytest.mark.parametrize("private", ["127.0.0.1", "127.0.0.1:{port}"])
async def test_a_private_address_that_the_file_allows_is_reached(private, answer):
    with serving(hello=(200, {"Content-Type": "text/plain"}, b"hello")) as server:
        place = private.format(port=server.port)
        told = await answer(f"{server.url}/hello", private=(place,))

    assert (200, "hello") == (told["status"], told["body"])


@pytest.mark.parametrize("private", ["10.0.0.1", "127.0.0.1:1", "localhost"])
async def test_another_private_address_stays_refused(private, fetch, failure):
    with serving(hello=(200, {}, b"hello")) as server:
        failed = await failure(fetch(f"{server.url}/hello", private=(private,)))

        assert "is no public address" in failed.message
        assert [] == server.asked


async def test_a_name_is_refused_if_one_of_its_addresses_is_not_public(names, fetch, failure):
    names["two.example"] = [["93.184.215.14", "10.0.0.7"]]

    failed = await failure(fetch("http://two.example/"))

    assert "two.example is 10.0.0.7, which is no public address" in failed.message


async def test_the_checked_address_is_connected_to_whatever_the_name_means_next(names, answer):
    with serving(hello=(200, {}, b"the checked one")) as good, serving("127.0.0.2") as bad:
        names["moving.example"] = [["127.0.0.1"], ["127.0.0.2"]]
        told = await answer(f"http://moving.example:{good.port}/hello")

        assert "the checked one" == told["body"]
        assert f"moving.example:{good.port}" == good.asked[0][2]["Host"]
        assert ["moving.example"] == names["asked"]
        assert [] == bad.asked


async def test_a_name_that_becomes_private_at_a_redirect_is_refused(names, fetch, failure):
    with serving() as server:
        there = f"http://moving.example:{server.port}"
        server.answers["/a"] = (302, {"Location": f"{there}/b"}, b"")
        server.answers["/b"] = (200, {}, b"never")
        names["moving.example"] = [["127.0.0.1"], ["127.0.0.2"]]
        failed = await failure(fetch(f"{there}/a", private=("127.0.0.1",)))

        assert "was answered by a redirect: moving.example is 127.0.0.2" in failed.message
        assert ["/a"] == [path for _, path, *_ in server.asked]


@pytest.mark.parametrize(
    "rule",
    [
        (["api.example.com"], "https://api.example.com/x", True),
        (["api.example.com"], "https://API.example.com./x", True),
        (["api.example.com"], "http://api.example.com/x", False),
        (["api.example.com"], "https://api.example.com:8443/x", False),
        (["api.example.com:8443"], "https://api.example.com:8443/x", True),
        (["http://api.example.com"], "http://api.example.com/x", True),
        (["http://api.example.com"], "https://api.example.com/x", False),
        (["*.github.com"], "https://raw.github.com/", True),
        (["*.github.com"], "https://a.b.github.com/", True),
        (["*.github.com"], "https://github.com/", False),
        (["*.github.com"], "https://evilgithub.com/", False),
        (["*.github.com"], "https://github.com.evil.example/", False),
        (["api.example.com"], "https://api.example.com@evil.example/", False),
        (["api.example.com"], "https://evil.example/api.example.com", False),
        (["*"], "https://anything.example/", True),
        ([], "https://anything.example/", False),
    ],
)
async def test_an_allow_list_says_which_hosts_are_asked(rule, names, fetch, failure):
    allow, url, is_allowed = rule
    for host in ("api.example.com", "raw.github.com", "a.b.github.com", "anything.example"):
        names[host] = [["10.0.0.1"]]

    failed = await failure(fetch(url, allow=allow))

    # No test leaves this machine: what is allowed is refused by its address.
    assert is_allowed == ("is no public address" in failed.message)


@pytest.mark.parametrize("rule", ["", "https://a/b", "a b", "*.*.com", "ftp://a", "a:b", "**"])
def test_a_rule_that_cannot_be_meant_is_refused(rule):
    with pytest.raises(ValidationError, match="write it as"):
        HttpAccess(allow=[rule])


@pytest.mark.parametrize("place", ["", "*", "http://10.0.0.1", "10.0.0.0/8", "fd00::1"])
def test_a_private_place_that_cannot_be_meant_is_refused(place):
    with pytest.raises(ValidationError, match="write it as"):
        HttpAccess(private=[place])


@pytest.fixture
def https(tmp_path, monkeypatch):
    """The context of a server whose certificate is for right.example, and is trusted here."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    names = x509.SubjectAlternativeName([x509.DNSName("right.example")])
    made = made.add_extension(names, critical=True).sign(key, hashes.SHA256())
    file = tmp_path / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    _certificates.cache_clear()
    yield context
    _certificates.cache_clear()


async def test_a_certificate_is_checked_for_the_name_and_not_for_its_address(
    https, names, answer, fetch, failure
):
    names["right.example"] = names["wrong.example"] = [["127.0.0.1"]]
    with serving(context=https, hello=(200, {}, b"hello")) as server:
        told = await answer(f"https://right.example:{server.port}/hello")
        wrong = f"https://wrong.example:{server.port}/hello"
        failed = await failure(fetch(wrong, private=("127.0.0.1",)))

        assert "hello" == told["body"]
        assert "not valid for 'wrong.example'" in failed.message
        assert 1 == len(server.asked)
