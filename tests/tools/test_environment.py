"""Which variables of its runner's environment a tool sees (I11)."""

import os

import pytest
from msgspec.structs import replace

from cueline.tools.shell import run_command
from cueline.tools.worker_protocol import scrub_environment


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "github_token",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "PGPASSFILE",
        "DB_PASS",
        "MYSQL_PWD",
        "TOKEN",
        "password",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GITHUB_PAT",
        "DATABASE_URL",
        "CI_REDIS_URL",
        "SENTRY_DSN",
        "RAY_AUTH_TOKEN_PATH",
        "CUELINE_LOG",
        "PYTHONBREAKPOINT",
        "OMP_NUM_THREADS",
        "NAMED_BY_THE_AGENT",
    ],
)
def test_what_no_tool_may_see_is_taken_out_unless_it_is_passed_on(name):
    assert {"HOME": "h"} == scrub_environment({name: "x", "HOME": "h"}, ["NAMED_BY_THE_AGENT"])
    assert {name: "x"} == scrub_environment({name: "x"}, ["NAMED_BY_THE_AGENT"], [name])


def test_other_variables_stay():
    innocent = {"PWD": "/", "OLDPWD": "/", "PATH": "/bin", "XRAY_MODE": "on", "BASE_URL": "http:"}

    assert innocent == scrub_environment(innocent)


async def test_a_command_sees_what_its_agent_passes_on_and_no_other_key(
    executor, order, monkeypatch
):
    for name in ("ANTHROPIC_API_KEY", "RAY_ADDRESS", "CUELINE_LOG", "DATABASE_URL", "DB_PASS"):
        monkeypatch.setenv(name, f"planted in {name}")
    plain = order(run_command, command="env")
    passing = replace(plain, environment=("DATABASE_URL", "UNSET"), secrets=("DATABASE_URL",))

    first = (await executor.call(plain)).content.decode()
    second = (await executor.call(passing)).content.decode()
    third = (await executor.call(plain)).content.decode()

    assert 0 == first.count("planted") == third.count("planted")
    assert "DATABASE_URL=planted in DATABASE_URL" in second
    assert 1 == second.count("planted")
    assert os.environ["PATH"] in first
