"""What a fork's past had used, up to the version where it left its parent."""

from decimal import Decimal

from sqlite_utils import Database

from cueline.projections.row import Row

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_USED = """
    SELECT kind, status, ended_version,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost
    FROM effects WHERE stream = ? AND requested_version <= ?
"""
_PARENT = "SELECT parent, parent_version FROM sessions WHERE stream = ?"


def inherit(db: Database, fork: Row) -> None:
    """Sum up in *fork* what those it descends from had requested by then."""
    stream, until = fork["parent"], fork["parent_version"]
    seen = {fork["stream"]}
    while stream is not None and stream not in seen:
        seen.add(stream)
        _add(db, fork, stream, until)
        stream, above = db.execute(_PARENT, [stream]).fetchone() or (None, 0)
        until = min(until, above)


def _add(db: Database, fork: Row, stream: str, until: int) -> None:
    for kind, status, ended, *tokens, cost in db.execute(_USED, [stream, until]):
        over = ended is not None and ended <= until
        if kind == "tool":
            fork["inherited_tool_calls"] += 1
        elif over and status == "returned":
            fork["inherited_turns"] += 1
        if not over:
            continue
        for name, used in zip(_TOKENS, tokens, strict=True):
            fork[f"inherited_{name}"] += used
        fork["inherited_cost"] = str(Decimal(fork["inherited_cost"]) + Decimal(cost))
