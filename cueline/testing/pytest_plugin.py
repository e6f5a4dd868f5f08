"""The fixture `crash_everywhere`, for pytest: name this module in `pytest_plugins`.

No entry point registers it, because then every run of pytest would import cueline.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cueline.testing.crash_everywhere import crash_everywhere as kill_everywhere


@pytest.fixture
def crash_everywhere(tmp_path: Path) -> Callable[..., list[str]]:
    """Return `crash_everywhere`, which keeps the logs of processes in the test's folder."""
    return partial(kill_everywhere, folder=tmp_path)
