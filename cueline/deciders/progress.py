"""The progress of a session with its plan: the value of each step, and the next steps."""

from msgspec import Struct
from msgspec.structs import replace
from pydantic import JsonValue

from cueline.deciders.expression import needs_of
from cueline.events.agent_parts import Plan, Step, StepStatus


class StepResult(Struct, frozen=True):
    """The end of a step, or of one item of it."""

    status: StepStatus
    value: JsonValue = None
    """The returned value: JSON, or a text."""
    text: str = ""
    error: str = ""
    error_code: str = ""


class OpenStep(Struct, frozen=True):
    """A step that has begun and is not over."""

    items: int | None = None
    """The number of the items of its `for_each`; None: it has one call."""
    added: int = 0
    """The step's calls so far."""
    results: dict[int, StepResult] = {}
    """The ends of its calls, by item."""


class Progress(Struct, frozen=True):
    """The progress of a plan. The list of possible steps changes only with the end of a step."""

    steps: dict[str, Step]
    needs: dict[str, tuple[str, ...]]
    needed_by: dict[str, tuple[str, ...]]
    parameters: dict[str, JsonValue]
    ready: tuple[str, ...]
    """Steps that have not begun and whose needed steps are all over."""
    open: dict[str, OpenStep] = {}
    over: dict[str, StepResult] = {}
    added: int = 0
    """The calls so far."""
    failed: str = ""
    """The first critical step that failed: after it no step begins."""
    messages: dict[str, tuple[JsonValue, ...]] = {}
    """By name: the values of the received messages that no wait has taken, in order."""


def progress_of(plan: Plan, parameters: dict[str, JsonValue]) -> Progress:
    """Return the progress of a session that begins."""
    needs = {step.name: needs_of(step) for step in plan.steps}
    needed_by: dict[str, tuple[str, ...]] = {}
    for name, each in needs.items():
        for need in each:
            needed_by[need] = (*needed_by.get(need, ()), name)
    steps = {step.name: step for step in plan.steps}
    free = [name for name, each in needs.items() if not each]
    return Progress(steps, needs, needed_by, parameters, _in_order(steps, free))


def begun(progress: Progress, name: str, items: int | None) -> Progress:
    """Return *progress* with a step that begins."""
    ready = tuple([each for each in progress.ready if each != name])
    return replace(progress, ready=ready, open=progress.open | {name: OpenStep(items)})


def call_added(progress: Progress, name: str) -> Progress:
    """Return *progress* with another call of an open step."""
    step = progress.open[name]
    opened = progress.open | {name: replace(step, added=step.added + 1)}
    return replace(progress, open=opened, added=progress.added + 1)


def call_over(progress: Progress, name: str, index: int, result: StepResult) -> Progress:
    """Return *progress* after a call of an open step, which may end the step."""
    step = progress.open.get(name)
    if step is None:  # another item failed, and the step with it
        return progress
    if step.items is None:
        return step_over(progress, name, result)
    results = step.results | {index: result}
    if len(results) < step.items:
        return replace(progress, open=progress.open | {name: replace(step, results=results)})
    return step_over(progress, name, _all_of([results[i] for i in range(step.items)]))


def _all_of(results: list[StepResult]) -> StepResult:
    """Return the end of a step with items: failed if an item failed; the other values stay."""
    ends = [each for each in results if each.status != "completed"]
    text = "\n".join([each.text for each in results if each.text])
    values: list[JsonValue] = [each.value for each in results]
    if not ends:
        return StepResult("completed", values, text)
    return StepResult(ends[0].status, values, text, ends[0].error, ends[0].error_code)


def message_came(progress: Progress, name: str, value: JsonValue) -> Progress:
    """Keep the value of a message until a wait takes it."""
    came = (*progress.messages.get(name, ()), value)
    return replace(progress, messages=progress.messages | {name: came})


def message_taken(progress: Progress, name: str) -> Progress:
    """Return *progress* after a wait took the oldest message of that name."""
    left = progress.messages.get(name, ())[1:]
    return replace(progress, messages=progress.messages | {name: left})


def step_over(progress: Progress, name: str, result: StepResult) -> Progress:
    """Return *progress* after a step, with the steps that may begin by that."""
    over = progress.over | {name: result}
    free = [
        each
        for each in progress.needed_by.get(name, ())
        if all(need in over for need in progress.needs[each])
    ]
    ready = [each for each in progress.ready if each != name]
    left = {each: step for each, step in progress.open.items() if each != name}
    ordered = _in_order(progress.steps, [*ready, *free])
    return replace(progress, over=over, ready=ordered, open=left)


def _in_order(steps: dict[str, Step], names: list[str]) -> tuple[str, ...]:
    """Return *names*, first the waits for messages, which do not count as calls."""
    return tuple(sorted(names, key=lambda name: not steps[name].wait))
