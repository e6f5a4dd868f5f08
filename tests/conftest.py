"""How the tests share two workers (one file stays on one, so does all of Ray), and their time."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no reason to fail, and neither is
# an unlucky draw: `--hypothesis-profile search` draws anew at each run.
busy = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **busy)
settings.register_profile("cueline", derandomize=True, database=None, **busy)
settings.load_profile("cueline")

RAY = Path(__file__).parent / "ray"


def pytest_collection_modifyitems(items):
    for item in items:
        group = "ray" if item.path.is_relative_to(RAY) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
