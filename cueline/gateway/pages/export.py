"""A session as one file of HTML, which needs neither a server nor a network."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256

from markupsafe import Markup

from cueline.client.export import event_document, export_of
from cueline.client.history import History
from cueline.console.event_renderer import EventRenderer
from cueline.gateway.pages.conversation import html, items
from cueline.gateway.pages.page import STATIC, templates
from cueline.gateway.pages.session import why_of
from cueline.gateway.pages.timeline import bars, timeline


def page_of(history: History) -> str:
    """Return the page of a session: how it stands, its timeline, conversation and events."""
    style = (STATIC / "style.css").read_text()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    events = list(history.events)
    recorded = [event_document(each, fact) for each, fact in events]
    why, bad = why_of(history)
    now = datetime.now(UTC)
    return (
        templates()
        .get_template("export.html")
        .render(
            policy=f"default-src 'none'; style-src 'sha256-{digest}'",
            style=Markup(style),  # noqa: S704 - our own file
            id=history.id,
            was=export_of(history),
            status=history.status,
            why=why,
            bad=bad,
            at=now,
            items=Markup().join(html(each, "#v") for each in items(events, EventRenderer())),
            timeline=timeline(bars(events), now, "#v"),
            events="\n".join(json.dumps(each, ensure_ascii=False) for each in recorded),
        )
    )
