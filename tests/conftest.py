"""How the tests share their workers (one file stays on one, and what shares a Ray), and their time.

No process that a test starts outlives it.
"""

import os
import signal
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# No test uses, or changes, the keys that whoever runs it has stored.
os.environ["XDG_CONFIG_HOME"] = f"{tempfile.gettempdir()}/cueline-tests-store-no-keys"
# No seal comes between the events that a slow test counts.
os.environ["CUELINE_SEAL_EVERY_SECONDS"] = "0"

# Tests send these to what they start, which would inherit from `nohup` or `&` that it ignores them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A machine that is busy with something else is no reason to fail, and neither is
# an unlucky draw: `--hypothesis-profile search` draws anew at each run.
busy = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **busy)
settings.register_profile("cueline", derandomize=True, database=None, **busy)
settings.load_profile("cueline")

RAY = "tests/ray/"
ALONE = ("tests/ray/test_demo.py", "tests/ray/test_own_ray.py")
"""What starts a Ray of its own."""
LONG = (
    RAY,
    "tests/torture/",
    "tests/test_makefile.py",
    "tests/test_chaos.py",
    "tests/test_wheel.py",
    "tests/test_docs.py",
    "tests/cli/test_terminal",
)
"""What takes longest and cannot be parted; it begins first."""


class Together(LoadScopeScheduling):
    """Gives each file to one worker, and what shares a Ray: there is one, not one a worker."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return RAY if file.startswith(RAY) and file not in ALONE else file


# Not by the mark `xdist_group`: it has no effect with pytest 9.2.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Together(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    # One more than there are cores: much of what is tested waits, for a process or for its time.
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture
def popen():
    """Return `subprocess.Popen`, of which all that came is killed when the test is over."""
    with ExitStack() as started:

        def popen(*command, **options):
            process = started.enter_context(subprocess.Popen(*command, **options))
            started.callback(process.kill)
            return process

        yield popen


@pytest.fixture
def figures(request, record_property):
    """Return what tells a figure to whoever runs the tests, at the end and on any worker."""
    return lambda text: record_property("figure", f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter):
    figures = [
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, text in getattr(report, "user_properties", [])
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
    for text in figures:
        terminalreporter.line(text)
    skipped = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        reasons = ", ".join(f"{count} ({why})" for why, count in skipped.items())
        terminalreporter.line(f"tests that were left out here: {reasons}".replace("Skipped: ", ""))
