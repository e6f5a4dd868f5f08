"""How the tests share two workers: one file stays on one, and so does all of Ray."""

from pathlib import Path

import pytest

RAY = Path(__file__).parent / "ray"


def pytest_collection_modifyitems(items):
    for item in items:
        group = "ray" if item.path.is_relative_to(RAY) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
