"""The conformance suite of MCP, against its fixtures on the endpoint of the gateway.

It needs `npm ci` in tests/gateway/conformance, which brings a node of its own.
"""

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cueline.testing.wait import wait_until

FOLDER = Path(__file__).parent / "conformance"
MODULES = FOLDER / "node_modules"
NODE = MODULES / "node/bin/node"
SUITE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
pytestmark = pytest.mark.skipif(
    not (NODE.exists() and SUITE.exists()), reason="needs `npm ci` in tests/gateway/conformance"
)


@contextmanager
def everything(folder):
    """Serve the fixtures with a log in *folder*; yield the URL."""
    told = folder / "url"
    command = [sys.executable, "-W", "ignore", "-m", "tests.gateway.conformance.everything"]
    with told.open("w") as output:
        process = subprocess.Popen([*command, folder / "log.db"], stdout=output)
    try:
        wait_until(lambda: told.read_text() or process.poll() is not None, within=60)
        yield told.read_text().strip()
    finally:
        process.terminate()
        process.wait(timeout=30)


# 002-017, C43
@pytest.mark.parametrize(
    ("revision", "options", "fewest"),
    [
        ("2026-07-28", (), 150),
        ("2025-11-25", ("--expected-failures", FOLDER / "expected-failures.yml"), 50),
    ],
)
def test_the_endpoint_conforms_to_a_revision(tmp_path, revision, options, fewest):
    with everything(tmp_path) as url:
        asked = [NODE, SUITE, "server", "--url", url, "--requirements", revision, *options]
        done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout[-4000:]
    (passed,) = re.findall(r"Total: (\d+) passed", done.stdout)
    assert int(passed) >= fewest
