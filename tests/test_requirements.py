"""The page of requirements: it says what each cited number demands, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\b(?:00\d-\d{3}|[CD]\d{1,2})\b")
RANGE = re.compile(r"\b(00\d)-(\d{3}) to \1-(\d{3})\b")


def cited_in(text: str) -> Iterator[str]:
    yield from NUMBER.findall(text)
    for source, first, last in RANGE.findall(text):
        yield from (f"{source}-{number:03}" for number in range(int(first), int(last) + 1))


def test_the_page_explains_each_cited_number_and_no_other():
    files = [each for room in ("cueline", "tests", "bench") for each in (ROOT / room).rglob("*.py")]
    texts = [each.read_text() for each in (*files, ROOT / "pyproject.toml")]
    explained = re.findall(r"(?m)^\| (\S+) \| [A-Z`]", (ROOT / "docs/requirements.md").read_text())

    assert {number for text in texts for number in cited_in(text)} == set(explained)
    assert len(explained) == len(set(explained))
