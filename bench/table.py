"""The rows that a bench returns: each has a figure, and the floor that it must keep."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_FLOOR = re.compile(r"([≥≤]) ([\d.,]+)( ×)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, with its unit, ratio and floor."""

    name: str
    value: float
    unit: str
    floor: str = ""
    """As in `≥ 70,000` of the value, or `≥ 1.7 ×` of the ratio; empty: only told."""
    ratio: float | None = None
    to: str = ""
    """What the ratio is to."""

    @property
    def kept(self) -> bool:
        """Whether the floor is kept."""
        if not self.floor:
            return True
        matched = _FLOOR.match(self.floor)
        assert matched is not None, f"{self.floor!r} is no floor"
        sign, number, of_ratio = matched.groups()
        measured = self.ratio if of_ratio else self.value
        assert measured is not None, f"{self.name} has a floor on a ratio and no ratio"
        bound = float(number.replace(",", ""))
        return measured >= bound if sign == "≥" else measured <= bound

    def cells(self) -> list[str]:
        """Return the row as texts, in the order of `HEADINGS`."""
        ratio = "" if self.ratio is None else f"{number(self.ratio)} × {self.to}".rstrip()
        return [
            self.name,
            f"{number(self.value)} {self.unit}",
            ratio,
            self.floor,
            "" if not self.floor else "kept" if self.kept else "MISSED",
        ]


def eased(row: Row) -> Row:
    """Return *row* with half of its floor, which a single short round under load must keep."""
    matched = _FLOOR.match(row.floor)
    if matched is None:
        return row
    sign, number, of_ratio = matched.groups()
    bound = float(number.replace(",", "")) * (0.5 if sign == "≥" else 2)
    return replace(row, floor=f"{sign} {bound:g}{of_ratio or ''}")


HEADINGS = ["figure", "measured", "ratio", "floor", ""]


def number(value: float) -> str:
    """Return *value* with three significant digits, or with all digits before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown(rows: Iterable[Row]) -> str:
    """Return *rows* as a table in Markdown."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(rows: Iterable[Row]) -> str:
    """Return *rows* as a table for a terminal."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
