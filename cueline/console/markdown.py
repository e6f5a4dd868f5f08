"""Renders the text of an agent as Markdown."""

from collections.abc import Iterator

from rich.markdown import Heading, Markdown
from rich.text import Text


class _Left(Heading):
    """A heading that is aligned at the left, and not centred as Rich does."""

    def __rich_console__(self, *_: object) -> Iterator[Text]:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Left}  # noqa: RUF012 - as rich declares it


def markdown(text: str) -> Markdown | None:
    """Return *text* as Markdown; None if the rendering would hide a part of it."""
    reply = _Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    tokens = [each for token in reply.parsed for each in (token, *(token.children or ()))]
    return None if any(each.type.startswith("html") for each in tokens) else reply
