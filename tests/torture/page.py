"""The tables of docs/reliability.md, to which each run adds lines."""

import re
from pathlib import Path

from bench import machine

MACHINE = "## Where was the last run?\n"
PAGE = Path(__file__).parents[2] / "docs/reliability.md"


def rows(heading):
    """Return the rows of the first table under a heading, by column."""
    after = PAGE.read_text().partition(f"## {heading}\n")[2]
    lines = re.search(r"(?:\|.*\n)+", after)[0].splitlines()
    names, _, *found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [dict(zip(names, cells, strict=True)) for cells in found]


def write(line, heading):
    """Print a line, and add it to the table under a heading."""
    print(line, flush=True)
    PAGE.write_text(with_row(PAGE.read_text(), heading, line))


def note_machine():
    """Write where the last run took place."""
    before, found, after = PAGE.read_text().partition(MACHINE)
    assert found, f"the page has no {MACHINE!r}"
    rest = after[after.index("\n## ") :]
    PAGE.write_text(f"{before}{found}\n{machine.told()}\n{rest}")


def with_row(page, heading, line):
    """Return the text of the page with another line at the end of the table under *heading*."""
    before, found, after = page.partition(f"{heading}\n")
    assert found, f"the page has no {heading!r}"
    end = re.search(r"\|\n(?!\|)|\|\Z", after).end()
    return f"{before}{found}{after[:end]}{line}\n{after[end:]}"
