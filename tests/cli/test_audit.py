"""`cueline audit`: what it follows, and which options go together."""

import asyncio

import pytest
from typer.testing import CliRunner

from cueline.cli import app, audit
from cueline.events.inbox import MessageSent
from cueline.events.log_url import LogUrl
from cueline.testing.wait import await_until
from tests.audit_example import Example, fill

ASKED = {"type": "MessageSent", "actor": "user:ada", "limit": 10}


@pytest.fixture
async def log(tmp_path):
    url = str(tmp_path / "log.db")
    await fill(url)
    return url


@pytest.mark.parametrize("show", [audit._show_table, audit._show_json, audit._show_csv])
async def test_an_audit_goes_on_with_the_events_that_come(log, show, capsys):
    told = []
    following = asyncio.create_task(audit._list(LogUrl.of(log), ASKED, show, follow=True))

    def has_come(text):
        told.append(capsys.readouterr().out)
        return text in "".join(told)

    await await_until(lambda: has_come("night"))
    writer = Example(log)
    for name, actor in (("night", "user:ada"), ("tidy", "user:bob"), ("report", "user:ada")):
        await writer.append(f"inbox-default/{name}", MessageSent(text="More."), actor=actor)
    await await_until(lambda: has_come("report"))
    following.cancel()
    await writer.store.close()

    lines = [line for line in "".join(told).splitlines() if "MessageSent" in line]
    assert 3 == len(lines)
    assert "tidy" not in "".join(lines)


@pytest.mark.parametrize(
    "words", [["--tool", "x"], ["--since", "1d"], ["--text", "x"], ["--follow"], ["--actor", "x"]]
)
def test_sql_takes_no_other_conditions(words, tmp_path):
    asked = ["audit", "--sql", "SELECT 1", *words, "--log", str(tmp_path / "log.db")]

    refused = CliRunner().invoke(app, asked)

    assert 2 == refused.exit_code
    assert f"{words[0]} does not go with --sql" in " ".join(refused.stderr.split())


def test_an_audit_has_one_form(tmp_path):
    asked = ["audit", "--json", "--csv", "--log", str(tmp_path / "log.db")]

    refused = CliRunner().invoke(app, asked)

    assert 2 == refused.exit_code
    assert "--json and --csv exclude each other" in " ".join(refused.stderr.split())
