"""Draws a plan as lines for a terminal, and as an SVG picture."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import Final

from cueline.client.workflow import WorkflowState
from cueline.console.text import Line, Tone, count, duration, one_line
from cueline.events.agent import AGENT_SCHEME, AgentSpec
from cueline.events.agent_parts import Step
from cueline.events.event_text import step_text

_WIDTH: Final = 60
_BOX: Final = (180, 54)
_GAP: Final = (70, 22)
_MARKS: Final = {
    "completed": "✓",
    "failed": "✗",
    "skipped": "-",
    "running": "▸",
    "pending": " ",
}
_TONES: Final[Mapping[str, Tone]] = {"completed": "good", "failed": "bad", "running": "doing"}
_COLOURS: Final = {"agent": "#dbe9ff", "tool": "#e6f5e6", "wait": "#fff1d6"}

_Spot = tuple[str, int | None]
"""The box of a step, or the place at which an arrow from it crosses a column."""


def levels(steps: tuple[Step, ...]) -> list[list[Step]]:
    """Return *steps* by level: the length of the longest path of needed steps."""
    depth: dict[str, int] = {}
    left = {step.name: step for step in steps}
    while left:
        ready = [step for step in left.values() if all(need in depth for need in step.needs)]
        for step in ready:
            del left[step.name]
        depth |= {s.name: 1 + max((depth[n] for n in s.needs), default=-1) for s in ready}
    return [[s for s in steps if depth[s.name] == at] for at in range(max(depth.values()) + 1)]


def plan_lines(agent: AgentSpec) -> Iterator[Line]:
    """Yield the steps of *agent* by level; the steps of one level can run at the same time."""
    plan = agent.plan
    assert plan is not None, "only a plan is drawn"
    most = count(plan.max_parallel, "call")
    yield Line("said", f"{agent.name}: {count(len(plan.steps), 'step')}, at most {most} at a time")
    width = max(len(step.name) for step in plan.steps)
    for number, level in enumerate(levels(plan.steps), 1):
        for at, step in enumerate(level):
            begin = f"{number:3} ─" if at == 0 else "    │"
            told = " · ".join(one_line(each, _WIDTH) for each in _told(step, agent))
            yield Line("output", f"{begin} {step.name:{width}}  {told}")
    if plan.output:
        yield Line("note", f"result: {one_line(plan.output, _WIDTH)}")


def _kind(step: Step, agent: AgentSpec) -> tuple[str, str]:
    """Return the kind of a step, `agent`, `tool` or `wait`, and its name."""
    if step.wait:
        return "wait", f"message {step.wait}"
    tool = next(each for each in agent.tools if each.name == step.name)
    if tool.target.startswith(AGENT_SCHEME):
        return "agent", f"agent {tool.target.removeprefix(AGENT_SCHEME)}"
    return "tool", f"tool {tool.own_name or tool.name}"


def _told(step: Step, agent: AgentSpec) -> Iterator[str]:
    yield _kind(step, agent)[1]
    if step.needs:
        yield f"needs {', '.join(step.needs)}"
    if step.condition != "on_success":
        yield step.condition.replace("_", " ")
    if step.when:
        yield f"when {step.when}"
    if step.for_each:
        yield f"for each of {step.for_each}"
    if not step.auto_approve:
        yield "what needs it is asked about"
    tool = next((each for each in agent.tools if each.name == step.name), None)
    if tool is not None and not tool.critical:
        yield "not critical"


def step_lines(state: WorkflowState) -> Iterator[Line]:
    """Yield one line for each step: status, time, and the reason if it failed or was skipped."""
    width = max(len(each.name) for each in state.steps)
    for each in state.steps:
        pieces = [f"{_MARKS[each.status]} {each.name:{width}}  {each.status}"]
        if each.seconds is not None and each.calls:
            pieces.append(duration(each.seconds))
        if each.calls > 1:
            pieces.append(count(each.calls, "call"))
        pieces += [f"child {child}" for child in each.children[:1]]
        if why := step_text(each.error_code, each.error):
            pieces.append(one_line(why, _WIDTH * 2))
        yield Line(_TONES.get(each.status, "dim"), " · ".join(pieces))


def plan_svg(agent: AgentSpec) -> str:
    """Return a picture of the steps of *agent* as SVG; arrows lead from needed steps."""
    plan = agent.plan
    assert plan is not None, "only a plan is drawn"
    (wide, high), (right, down) = _BOX, _GAP
    arrows = _arrows(plan.steps)
    columns = _columns(plan.steps, arrows)
    tallest = max(map(len, columns))
    place = {
        spot: (
            right / 2 + x * (wide + right),
            down + (y + (tallest - len(column)) / 2) * (high + down),
        )
        for x, column in enumerate(columns)
        for y, spot in enumerate(column)
    }
    size = len(columns) * (wide + right), down + tallest * (high + down)
    size_of = f'width="{size[0]}" height="{size[1]}"'
    marker = 'id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"'
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size_of} font-family="sans-serif">',
        f"<title>{escape(agent.name)}</title>",
        f'<marker {marker}><path d="M0 0L8 4L0 8z" fill="#667"/></marker>',
        f'<rect {size_of} fill="white"/>',
    ]
    pieces += [_arrow([place[spot] for spot in arrow]) for arrow in arrows]
    pieces += [_box(place[step.name, None], step, agent) for step in plan.steps]
    return "\n".join([*pieces, "</svg>", ""])


def _arrows(steps: tuple[Step, ...]) -> list[list[_Spot]]:
    """Return the spots of each arrow: a need, the columns that it crosses, and the step.

    Indirect dependencies get no arrow: if C needs B and B needs A, none from A to C.
    """
    depth = {step.name: at for at, level in enumerate(levels(steps)) for step in level}
    before: dict[str, set[str]] = {}
    for step in sorted(steps, key=lambda each: depth[each.name]):
        before[step.name] = {*step.needs, *(n for each in step.needs for n in before[each])}
    return [
        [(need, None), *((need, at) for at in range(depth[need] + 1, depth[step.name])), end]
        for step in steps
        for need in step.needs
        if not any(need in before[other] for other in step.needs)
        for end in [(step.name, None)]
    ]


def _columns(steps: tuple[Step, ...], arrows: list[list[_Spot]]) -> list[list[_Spot]]:
    """Return the spots from left to right; a column is ordered by its incoming arrows."""
    columns: list[list[_Spot]] = [[(step.name, None) for step in level] for level in levels(steps)]
    for spot in dict.fromkeys(spot for arrow in arrows for spot in arrow):
        if spot[1] is not None:
            columns[spot[1]].append(spot)
    for left, column in pairwise(columns):
        row = {spot: at - len(left) / 2 for at, spot in enumerate(left)}
        leading: dict[_Spot, list[float]] = {spot: [] for spot in column}
        for before, after in (pair for arrow in arrows for pair in pairwise(arrow)):
            if after in leading:
                leading[after].append(row[before])
        mean = {spot: fmean(rows) for spot, rows in leading.items()}
        column.sort(key=mean.__getitem__)
    return columns


def _arrow(spots: list[tuple[float, float]]) -> str:
    (wide, high), bend = _BOX, _GAP[0] / 2
    [(x, y), *rest] = [(x, y + high / 2) for x, y in spots]
    path = f"M{x + wide:g} {y:g}"
    x += wide
    for to_x, to_y in rest:
        path += f"C{x + bend:g} {y:g} {to_x - bend:g} {to_y:g} {to_x:g} {to_y:g}"
        x, y = to_x + wide, to_y
        path += f"H{x:g}" if (to_x, to_y) != rest[-1] else ""
    return f'<path d="{path}" fill="none" stroke="#667" marker-end="url(#end)"/>'


def _box(at: tuple[float, float], step: Step, agent: AgentSpec) -> str:
    (x, y), (wide, high) = at, _BOX
    kind, what = _kind(step, agent)
    told = "; ".join(_told(step, agent))
    dashed = ' stroke-dasharray="5 3"' if step.when or step.condition == "on_issues_found" else ""
    more = " ×n" if step.for_each else ""
    middle = x + wide / 2
    return (
        f"<g><title>{escape(told)}</title>"
        f'<rect x="{x:g}" y="{y:g}" width="{wide}" height="{high}" rx="6" '
        f'fill="{_COLOURS[kind]}" stroke="#667"{dashed}/>'
        f'<text x="{middle:g}" y="{y + 23:g}" text-anchor="middle" font-size="13">'
        f"{escape(one_line(step.name, 22))}{more}</text>"
        f'<text x="{middle:g}" y="{y + 41:g}" text-anchor="middle" fill="#445" font-size="11">'
        f"{escape(one_line(what, 30))}</text></g>"
    )
