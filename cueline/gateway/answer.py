"""The JSON of a client's results, as the HTTP API and the MCP endpoint send them."""

from typing import Any

from cueline.client.document import document
from cueline.client.open_read_models import Page
from cueline.client.session import Session


def document_of(result: object) -> Any:
    """Return the JSON of a result: that of `--json`."""
    if isinstance(result, Session):
        return document(result.receipt)
    if isinstance(result, Page):
        told = {"rows": document(result.rows), "more": result.more, "next": result.next}
        return told if result.damage is None else told | {"damage": str(result.damage)}
    return document(result)
