"""The conformance suite of MCP, against the client: all that 2026-07-28 requires of clients.

It needs `npm ci` in tests/gateway/conformance, which brings a node of its own. Not asked for are
the six scenarios of extensions, which are never scored: the client logs in by a person, and so has
no client credentials (two), no assertion of an enterprise's or a workload's identity (two), and no
proof of possession (`dpop`, two), which the SDK does not have either.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NPM = ROOT / "tests/gateway/conformance/node_modules"
NODE = NPM / "node/bin/node"
SUITE = NPM / "@modelcontextprotocol/conformance/dist/index.js"
pytestmark = pytest.mark.skipif(
    not (NODE.exists() and SUITE.exists()), reason="needs `npm ci` in tests/gateway/conformance"
)


@pytest.mark.parametrize(
    ("scenario", "fewest"),
    [
        ("tools_call", 2),
        ("request-metadata", 5),
        ("http-standard-headers", 4),
        ("http-custom-headers", 18),
        ("http-invalid-tool-headers", 12),
        ("json-schema-ref-no-deref", 1),
        ("sep-2322-client-request-state", 5),
        pytest.param("auth/authorization-server-migration", 28, marks=pytest.mark.long),
        ("auth/basic-cimd", 14),
        pytest.param("auth/iss-normalized", 8, marks=pytest.mark.long),
        pytest.param("auth/iss-not-advertised", 15, marks=pytest.mark.long),
        pytest.param("auth/iss-supported", 15, marks=pytest.mark.long),
        pytest.param("auth/iss-supported-missing", 8, marks=pytest.mark.long),
        pytest.param("auth/iss-unexpected", 8, marks=pytest.mark.long),
        ("auth/iss-wrong-issuer", 8),
        pytest.param("auth/metadata-default", 19, marks=pytest.mark.long),
        pytest.param("auth/metadata-issuer-mismatch", 3, marks=pytest.mark.long),
        pytest.param("auth/metadata-var1", 19, marks=pytest.mark.long),
        pytest.param("auth/metadata-var2", 19, marks=pytest.mark.long),
        pytest.param("auth/metadata-var3", 19, marks=pytest.mark.long),
        pytest.param("auth/offline-access-not-supported", 15, marks=pytest.mark.long),
        pytest.param("auth/offline-access-scope", 16, marks=pytest.mark.long),
        pytest.param("auth/pre-registration", 14, marks=pytest.mark.long),
        pytest.param("auth/resource-mismatch", 2, marks=pytest.mark.long),
        pytest.param("auth/scope-from-scopes-supported", 15, marks=pytest.mark.long),
        pytest.param("auth/scope-from-www-authenticate", 15, marks=pytest.mark.long),
        pytest.param("auth/scope-omitted-when-undefined", 15, marks=pytest.mark.long),
        pytest.param("auth/scope-retry-limit", 16, marks=pytest.mark.long),
        ("auth/scope-step-up", 21),
        ("auth/token-endpoint-auth-basic", 20),
        pytest.param("auth/token-endpoint-auth-none", 20, marks=pytest.mark.long),
        pytest.param("auth/token-endpoint-auth-post", 20, marks=pytest.mark.long),
    ],
)
def test_the_client_conforms_to_the_current_revision(tmp_path, scenario, fewest):
    command = f"{sys.executable} -W ignore -m tests.mcp_client.conformance_client"
    done = subprocess.run(
        [NODE, SUITE, "client", "--command", command, "--scenario", scenario],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout + done.stderr
    assert 0 == done.returncode, told[-4000:]
    (passed,) = re.findall(r"Passed: (\d+)/", told)
    assert int(passed) >= fewest
