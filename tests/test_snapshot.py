"""What people see of the recorded histories is as it was recorded.

`python -m tests.test_snapshot` records it anew.
"""

import asyncio
import json
import os
import re
import tempfile
from contextlib import chdir
from hashlib import sha256
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

from cueline.cli import app
from cueline.files import Trust
from cueline.projections.views import TABLES, Views
from cueline.stores.backend import backend_of
from tests.histories.logs import SteppingClock, scenes, write_log

SNAPSHOT = Path(__file__).parent / "histories" / "snapshot.txt"
PLAN = """
name = "release"
provider = "workflow"

[[steps]]
name = "look"
tool = "list_files"

[[steps]]
name = "agree"
wait = "yes"
needs = ["look"]
"""
OF_LOG = (
    *("list --json", "runs --json", "pending --json", "breakers --json", "costs --json"),
    *("costs --by model --json", "costs --by tree --json", "status --json", "fleet --json"),
    *("audit --json --limit 40", "audit --type ApprovalResolved --json"),
)
OF_SESSION = (
    *("show {} --json", "show {}", "export {}", "budget show {} --json", "budget show {}"),
    *("replay {} --json", "tail {} --plain -n 100", "tail {} --json -n 3"),
    *("audit --session {} --json --limit 4", "costs --session {} --by day --json"),
)
OF_CUT = ("show {}", "budget show {} --json")
OF_WORKFLOW = (
    *("workflow show release.toml --json", "workflow show release.toml"),
    "workflow state story --log followed.db --json",
)
WHOLE = ("cut", "made", "followed")
"""The logs on which each of `OF_LOG` is tried; on the others the first one is."""
WRONG = (
    *("show nobody", "show", "list --status done", "list --since soon", "costs --by hour"),
    *("pending nobody.1.0.1", "approve nobody.1.0.1", "budget raise s", "send s", "export nobody"),
    *("audit --limit 0", "replay s --to 0", "replay s --to 999", "tail nobody", "status --limt"),
    *("breakers reset nothing", "runs --status odd", "shwo s", "list --jsn"),
    *("resume nobody", "fork s", "pause nobody", "stop s", "workflow state s", "deny s.1.0.1"),
)
VOLATILE = (
    (re.compile(r'"hash": ?"\w+"'), '"hash": HASH'),
    (re.compile(r'_seconds": ?\d{7,}(\.\d+)?'), '_seconds": LONG'),
    (re.compile(r"\b\d{3,}d \d+h\b"), "LONG"),
)
"""What depends on salt, or on the time of day."""
LONGEST = 400
"""Of a longer line the beginning is kept, and a digest."""


def lines_of(folder: Path) -> str:
    """Return what the commands print, and how they end."""
    printed = []

    def run(words: str, *more: str) -> None:
        done = CliRunner().invoke(app, [*words.split(), *more])
        lines = [f"$ {' '.join((words, *more))}", *_output(done.stdout), *done.stderr.splitlines()]
        printed.append("\n".join(map(_short, [*lines, f"= {done.exit_code}"])) + "\n")

    for name, streams in scenes().items():
        log = f"{name}.db"
        asyncio.run(write_log(folder / log, streams))
        log_id = backend_of(log).found()[1]
        Trust(folder / "config" / "cueline").add(folder / log, log_id.encode())
        ids = [each.partition("/")[2] for each in streams if each.startswith("session-")]
        asked = {"made": (), "cut": OF_CUT}.get(name, OF_SESSION)
        for words in OF_LOG if name in WHOLE else OF_LOG[:1]:
            run(words, "--log", log)
        for words in asked:
            for id_ in ids:
                run(words.format(id_), "--log", log)
    for words in WRONG:
        run(words, "--log", "stopped.db")
    (folder / "release.toml").write_text(PLAN)
    for words in OF_WORKFLOW:
        run(words)
    return "".join(printed)


def _output(text: str) -> list[str]:
    """Return the lines of *text*; of a JSON document one for each of its values."""
    try:
        document = json.loads(text)
    except ValueError:
        return text.splitlines()
    if isinstance(document, dict):
        return [f"{json.dumps(key)}: {json.dumps(document[key])}" for key in document]
    return [json.dumps(each) for each in document]


def _short(line: str) -> str:
    for pattern, instead in VOLATILE:
        line = pattern.sub(instead, line)
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST]}… {sha256(line.encode()).hexdigest()[:16]}"


async def test_views_that_are_filled_again_have_the_same_rows(tmp_path):
    for name, streams in scenes().items():
        await write_log(tmp_path / name, streams)
        store = backend_of(str(tmp_path / name)).open(SteppingClock())
        one, other = Views(tmp_path / f"{name}-one"), Views(tmp_path / f"{name}-other")
        try:
            await one.catch_up(store)
            before = rows_of(one)
            await one.clear()
            await one.catch_up(store)
            await other.catch_up(store, batch=7)
            assert before == rows_of(one) == rows_of(other)
        finally:
            one.close()
            other.close()
            await store.close()


def rows_of(views: Views) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables."""
    tables = [name for (name,) in views.db.execute(TABLES)]
    return {name: views.db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


@pytest.fixture
def place(tmp_path):
    with chdir(tmp_path), mock.patch.dict(os.environ, environ(tmp_path)):
        yield tmp_path


def environ(folder: Path) -> dict[str, str]:
    return {"COLUMNS": "120", "XDG_CONFIG_HOME": str(folder / "config"), "NO_COLOR": "1"}


def test_what_people_see_is_as_it_was(place):
    assert SNAPSHOT.read_text(encoding="utf-8") == lines_of(place)


def main() -> None:
    """Record it anew."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        os.environ.update(environ(Path(name)))
        SNAPSHOT.write_text(lines_of(Path(name).resolve()), encoding="utf-8")


if __name__ == "__main__":
    main()
