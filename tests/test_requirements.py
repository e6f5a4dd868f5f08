"""The page of requirements: each number is cited at a test, or stands there with its reason."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOFS = ("tests", "bench", "cueline/testing")
"""The folders with tests: those of a contract run for each of its back-ends."""
SOURCES = {"000": 72, "001": 62, "002": 38, "003": 77, "004": 85}
KINDS = {"C": 51, "D": 38}
"""The last number of each source and kind; each begins at 1."""
NUMBER = re.compile(r"\b(?:00\d-\d{3}|[CD]\d{1,2})\b")
RANGE = re.compile(r"\b(00\d)-(\d{3}) to \1-(\d{3})\b")
PAGE = (ROOT / "docs/requirements.md").read_text()
PROVEN, UNTESTED = (
    dict(re.findall(r"(?m)^\| (\S+) \| ([A-Z`].+) \|$", part))
    for part in PAGE.split("## Numbers without a test\n")
)


def cited_in(*rooms: str) -> Iterator[str]:
    files = [each for room in rooms for each in (ROOT / room).rglob("*.py")]
    for each in (*files, ROOT / "pyproject.toml"):
        text = each.read_text()
        yield from NUMBER.findall(text)
        for source, first, last in RANGE.findall(text):
            yield from (f"{source}-{number:03}" for number in range(int(first), int(last) + 1))


def test_each_number_of_the_page_is_cited_at_a_test_or_has_a_reason():
    assert set(PROVEN) == set(cited_in(*PROOFS))
    assert len(PROVEN) + len(UNTESTED) == len(re.findall(r"(?m)^\| [0CD]\d", PAGE))
    assert [] == [number for number, reason in UNTESTED.items() if not reason.endswith(".")]


def test_the_code_cites_only_numbers_of_the_page():
    assert set(cited_in("cueline")) <= set(PROVEN)


def test_no_number_is_left_out():
    assert {*PROVEN, *UNTESTED} == {
        *(f"{source}-{at:03}" for source, last in SOURCES.items() for at in range(1, last + 1)),
        *(f"{kind}{at}" for kind, last in KINDS.items() for at in range(1, last + 1)),
    }
