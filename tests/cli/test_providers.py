"""`cueline providers` and `cueline models`: what can answer as a model here."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cueline.providers.registry import known_providers, provider_named

KEY = "sk-ant-listed-0123456789"


class Listing(BaseHTTPRequestHandler):
    """A server that lists its models to whoever has the key."""

    def do_GET(self):
        allowed = KEY in "".join(self.headers.values())
        listed = [{"type": "model", "id": "one"}, {"type": "model", "id": "two"}]
        refused = {"type": "error", "error": {"type": "authentication_error", "message": KEY}}
        body = json.dumps({"data": listed, "has_more": False} if allowed else refused).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Listing) as listing:
        Thread(target=listing.serve_forever, daemon=True).start()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{listing.server_port}")
        yield
        listing.shutdown()


# 002-004: what each can do, and whether it can be used here.
def test_the_providers_are_listed_with_their_keys_and_abilities(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    rows = {each["name"]: each for each in shell.json("providers")}
    told = shell("providers")

    assert set(known_providers()) == rows.keys()
    assert ("ANTHROPIC_API_KEY", True) == (
        rows["anthropic"]["key"],
        rows["anthropic"]["needs_key"],
    )
    assert rows["anthropic"]["capabilities"]["thinking"]
    assert "https://api.anthropic.com" == rows["anthropic"]["base_url"]
    assert "scripted     not needed" in told.output
    assert KEY not in told.output


def test_a_missing_key_is_shown_as_missing(shell):
    (row,) = [line for line in shell("providers").output.splitlines() if "anthropic" in line]

    assert ["anthropic", "missing"] == row.split()[:2]


# 002-003: models change, so a default is data with the day on which it was looked up.
@pytest.mark.parametrize("name", known_providers())
def test_a_default_model_has_the_day_on_which_it_was_looked_up(name):
    provider = provider_named(name)

    assert bool(provider.default_model) == bool(provider.looked_up)
    assert provider.looked_up == "" or "2026-11-01" < provider.looked_up < "2099"


# 002-008
def test_the_environment_names_another_default_model(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_MODEL", "claude-of-tomorrow")

    (row,) = [each for each in shell.json("providers") if each["name"] == "anthropic"]

    assert ("claude-of-tomorrow", "") == (row["model"], row["looked_up"])


@pytest.mark.usefixtures("server")
def test_a_server_is_asked_for_its_models(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    assert "one\ntwo\n" == shell("models", "anthropic").stdout
    assert ["one", "two"] == shell.json("models", "anthropic")


@pytest.mark.usefixtures("server")
def test_the_server_of_the_settings_is_asked_with_their_headers(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-another-0123456789")
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    address = os.environ["ANTHROPIC_BASE_URL"]
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    settings = f'provider = "anthropic"\nbase_url = "{address}"\n'
    monkeypatch.setenv("CUELINE_CONFIG", "mine.toml")
    (shell.folder / "mine.toml").write_text(f'{settings}[headers]\nX-Key = "$GATEWAY_KEY"\n')

    rows = {each["name"]: each["base_url"] for each in shell.json("providers")}

    assert ["one", "two"] == shell.json("models", "anthropic")
    assert (address, "https://api.openai.com/v1") == (rows["anthropic"], rows["openai"])


@pytest.mark.usefixtures("server")
def test_a_server_that_refuses_the_key_is_told_without_it(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-another-0123456789")

    done = shell("models", "anthropic")

    assert 1 == done.exit_code
    assert "error: " in done.stderr
    assert "401" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["models", "antropic"], "'antropic' is unknown: did you mean 'anthropic'?"),
        (["models", "scripted"], "scripted: has no list of models that can be asked for"),
        (["models", "anthropic"], "ANTHROPIC_API_KEY: is not set; put the key there, store it"),
    ],
)
def test_what_cannot_be_asked_is_refused(shell, words, told):
    done = shell(*words)

    assert 2 == done.exit_code
    assert told in done.stderr


def test_a_server_that_is_not_there_is_told(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    done = shell("models", "anthropic")

    assert 1 == done.exit_code
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
