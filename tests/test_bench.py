import importlib
from pathlib import Path

import pytest

from bench.__main__ import existing
from bench.table import Row

FOLDER = Path(__file__).parent.parent / "bench"


@pytest.mark.parametrize("name", existing())
def test_a_bench_says_what_its_floor_is(name):
    bench = importlib.import_module(f"bench.{name}")

    assert callable(bench.measure)
    assert "floor" in bench.__doc__.lower()


def test_no_bench_is_forgotten():
    files = [path for path in FOLDER.glob("*.py") if "def measure()" in path.read_text()]

    assert sorted(existing()) == sorted(path.stem for path in files)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (Row("told only", 3.0, "s"), True),
        (Row("high enough", 70_000.0, "events/s", "≥ 70,000"), True),
        (Row("too low", 69_999.0, "events/s", "≥ 70,000"), False),
        (Row("quick enough", 0.3, "s", "≤ 0.3"), True),
        (Row("ratio", 1.0, "turns/s", "≥ 4 ×", 4.1), True),
        (Row("ratio too low", 9.0, "turns/s", "≥ 4 ×", 3.9), False),
    ],
)
def test_a_floor_bounds_the_value_or_the_ratio(row, kept):
    assert kept == row.kept
