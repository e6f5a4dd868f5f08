"""How pages show texts, times and amounts."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from cueline.console.text import count, duration, is_diff, money, visible

_HEADS: Final = ("--- ", "+++ ")
"""The beginnings of the lines of a diff that name the files."""
_CLASSES: Final = {"+": "added", "-": "removed", "@": "place"}


@cache
def _markdown() -> MarkdownIt:
    # A page asks no other server: an image of the text is a link.
    return MarkdownIt("commonmark", {"html": False}).enable(["table"]).disable(["image"])


def markdown(text: str) -> Markup:
    """Return the HTML of a text in Markdown; HTML in the text is shown as it is."""
    return Markup(_markdown().render(visible(text)))  # noqa: S704 - the renderer escapes


def diff(text: str) -> Markup:
    """Return a text as lines, those of a diff in their colours."""
    lines = visible(text).split("\n")
    marks = _CLASSES if is_diff(lines) else {}
    shown = (
        f'<span class="{_class_of(line)}">{escape(line)}</span>'
        if line[:1] in marks
        else str(escape(line))
        for line in lines
    )
    return Markup("\n".join(shown))  # noqa: S704 - each line is escaped


def _class_of(line: str) -> str:
    return "place" if line.startswith(_HEADS) else _CLASSES[line[0]]


def pretty(value: object) -> str:
    """Return a value as JSON in several lines; a text as it is."""
    return visible(value if isinstance(value, str) else json.dumps(value, indent=2, default=str))


def ago(moment: datetime) -> Markup:
    """Return how long ago *moment* is, or in what time it comes, and the time itself."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    said = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    at = moment.astimezone(UTC).isoformat(" ", "seconds")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(at, said)


def arguments(given: Mapping[str, Any]) -> str:
    """Return the arguments of a call, short ones on one line."""
    line = ", ".join(f"{name}={json.dumps(each, default=str)}" for name, each in given.items())
    return visible(line) if len(line) <= 100 and "\\n" not in line else pretty(dict(given))  # noqa: PLR2004


def columns(rows: Iterable[tuple[str, float]], unit: str = "$") -> Markup:
    """Return a plot of amounts by name: a bar for each, as a picture that is a text, too."""
    told = list(rows)
    most = max((amount for _, amount in told), default=0) or 1
    bars = Markup("").join(
        Markup(
            '<g transform="translate(0 {y})"><title>{name}: {unit}{amount:.4f}</title>'
            '<text x="0" y="13">{short}</text><rect x="180" y="2" width="{width:.1f}" height="14" '
            'rx="2"/><text class="amount" x="{end:.1f}" y="13">{unit}{amount:.2f}</text></g>'
        ).format(
            y=20 * number,
            name=name,
            short=name if len(name) <= 26 else f"{name[:25]}…",  # noqa: PLR2004
            unit=unit,
            amount=amount,
            width=max(1, 360 * amount / most),
            end=186 + 360 * amount / most,
        )
        for number, (name, amount) in enumerate(told)
    )
    return Markup(
        '<svg class="plot" viewBox="0 0 620 {height}" role="img" aria-label="{said}">{bars}</svg>'
    ).format(
        height=20 * len(told), bars=bars, said=", ".join(f"{n}: {unit}{a:.2f}" for n, a in told[:8])
    )


def examples(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each parameter of a schema: its default, or an empty text."""
    return {name: each.get("default", "") for name, each in properties.items()}


FILTERS: Final = {
    "ago": ago,
    "arguments": arguments,
    "columns": columns,
    "count": count,
    "diff": diff,
    "duration": duration,
    "examples": examples,
    "json": partial(json.dumps, indent=2, ensure_ascii=False),
    "markdown": markdown,
    "money": money,
    "pretty": pretty,
    "visible": visible,
}
