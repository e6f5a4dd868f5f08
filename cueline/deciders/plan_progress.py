"""The progress of a session with its plan: the value of each step, and the next steps."""

from msgspec import Struct
from msgspec.structs import replace
from pydantic import JsonValue

from cueline.deciders.expression import needs_of
from cueline.events.agent_parts import Plan, Step, StepStatus


class StepResult(Struct, frozen=True):
    """The end of a step, or of one item of a step with `for_each`."""

    status: StepStatus
    value: JsonValue = None
    """The returned value: JSON, or a text."""
    text: str = ""
    error: str = ""
    error_code: str = ""


class OpenStep(Struct, frozen=True):
    """A step of a plan that has begun and is not over."""

    items: int | None = None
    """The number of items of the step's `for_each`; None: the step has one call."""
    added: int = 0
    """The number of the step's calls so far."""
    results: dict[int, StepResult] = {}
    """The ends of the step's calls, by item."""


class Progress(Struct, frozen=True):
    """The progress of a plan. The list of possible steps changes only with the end of a step."""

    steps: dict[str, Step]
    needs: dict[str, tuple[str, ...]]
    needed_by: dict[str, tuple[str, ...]]
    parameters: dict[str, JsonValue]
    ready: tuple[str, ...]
    """The steps that have not begun and whose needed steps are all over."""
    open: dict[str, OpenStep] = {}
    over: dict[str, StepResult] = {}
    added: int = 0
    """The number of calls of the plan so far."""
    failed: str = ""
    """The first critical step that failed, after which no step begins; empty: none."""
    messages: dict[str, tuple[JsonValue, ...]] = {}
    """The values of received messages that no wait has taken, by name, in order."""


def progress_of(plan: Plan, parameters: dict[str, JsonValue]) -> Progress:
    """Return the progress of *plan* at the start of a session."""
    needs = {step.name: needs_of(step) for step in plan.steps}
    needed_by: dict[str, tuple[str, ...]] = {}
    for name, each in needs.items():
        for need in each:
            needed_by[need] = (*needed_by.get(need, ()), name)
    steps = {step.name: step for step in plan.steps}
    free = [name for name, each in needs.items() if not each]
    return Progress(steps, needs, needed_by, parameters, _in_order(steps, free))


def begun(progress: Progress, name: str, items: int | None) -> Progress:
    """Return *progress* after the step *name* began."""
    ready = tuple([each for each in progress.ready if each != name])
    return replace(progress, ready=ready, open=progress.open | {name: OpenStep(items)})


def call_added(progress: Progress, name: str) -> Progress:
    """Return *progress* with another call of the open step *name*."""
    step = progress.open[name]
    opened = progress.open | {name: replace(step, added=step.added + 1)}
    return replace(progress, open=opened, added=progress.added + 1)


def call_over(progress: Progress, name: str, index: int, result: StepResult) -> Progress:
    """Return *progress* after the end of a call of the open step *name*, which may end the step."""
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
    """Return the end of a step with items: failed if an item failed, with all other values."""
    ends = [each for each in results if each.status != "completed"]
    text = "\n".join([each.text for each in results if each.text])
    values: list[JsonValue] = [each.value for each in results]
    if not ends:
        return StepResult("completed", values, text)
    return StepResult(ends[0].status, values, text, ends[0].error, ends[0].error_code)


def message_came(progress: Progress, name: str, value: JsonValue) -> Progress:
    """Return *progress* with the value of a message, which is kept until a wait takes it."""
    came = (*progress.messages.get(name, ()), value)
    return replace(progress, messages=progress.messages | {name: came})


def message_taken(progress: Progress, name: str) -> Progress:
    """Return *progress* after a wait took the oldest message *name*."""
    left = progress.messages.get(name, ())[1:]
    return replace(progress, messages=progress.messages | {name: left})


def step_over(progress: Progress, name: str, result: StepResult) -> Progress:
    """Return *progress* after the end of the step *name*, with the steps that may begin then."""
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
    """Return *names* in the order of *steps*, waits for messages first, which are no calls."""
    return tuple(sorted(names, key=lambda name: not steps[name].wait))
