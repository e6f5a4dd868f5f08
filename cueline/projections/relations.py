"""What users may ask with SQL: tables and views with documented columns, in each kind of log."""

from typing import Final

_CALL = """
    FROM effects e JOIN sessions s ON s.stream = e.stream
    LEFT JOIN events first ON first.position = e.started_position
    LEFT JOIN events last ON last.position = e.ended_position
"""
_USED = """
    {0}.input_tokens, {0}.output_tokens, {0}.cache_read_tokens, {0}.cache_write_tokens, {0}.cost,
    CAST({0}.cost AS DOUBLE PRECISION) AS usd
"""
VIEWS: Final = {
    "turns": f"""
    SELECT e.stream, s.id, CAST(substr(e.effect, 1, instr(e.effect, '.') - 1) AS INTEGER) AS turn,
    e.effect, s.agent, b.model, e.status, e.attempts, e.seconds, first.recorded_us AS started_us,
    last.recorded_us AS ended_us, {_USED.format("e")}
    {_CALL} LEFT JOIN bookings b ON b.stream = e.stream AND b.version = e.ended_version
    WHERE e.kind = 'model'
    """,
    "tool_calls": f"""
    SELECT e.stream, s.id, e.effect, s.agent, e.tool, e.arguments, e.declared, e.status, e.rule,
    e.attempts, e.runner, e.seconds, first.recorded_us AS started_us,
    last.recorded_us AS ended_us, said.text AS result, e.files_json
    {_CALL} LEFT JOIN transcript said ON said.stream = e.stream AND said.version = e.ended_version
    AND said.effect = e.effect AND said.kind = 'result'
    WHERE e.kind = 'tool'
    """,
    "costs": f"""
    SELECT u.stream, s.id, s.agent, root.started_by AS person, u.provider, u.model, u.day,
    u.calls, u.failed, {_USED.format("u")}
    FROM usage u JOIN sessions s ON s.stream = u.stream
    LEFT JOIN sessions root ON root.stream = s.root
    """,  # noqa: S608 - constants only
}
"""The views, each with its query."""
RELATIONS: Final = ("events", "sessions", *VIEWS, "approvals", "fleet")
