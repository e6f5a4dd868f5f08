"""What a plan wants next: a pure function of its steps, parameters and recorded results."""

from typing import NamedTuple

from pydantic import JsonValue

from cueline.deciders.expression import Context, evaluated, holds, rendered, steps_in
from cueline.deciders.progress import Progress, StepResult
from cueline.events.json_value import text_of
from cueline.events.message import Arguments, ToolCall
from cueline.events.plan import VALUE_LIMIT, Plan, Step, too_large
from cueline.events.session import StepEnded


class Additions(NamedTuple):
    """The steps that begin now, and those that end without a call."""

    calls: list[ToolCall]
    items: dict[str, int]
    ended: list[StepEnded]


class PlanEnd(NamedTuple):
    """The result of a plan, or why there is none."""

    value: JsonValue = None
    """None: it is the text, or null."""
    text: str = ""
    is_null: bool = False
    error_code: str = ""
    error: str = ""


def additions(progress: Progress, room: int) -> Additions:
    """Return what *progress* allows now; at most *room* calls, and any waits for messages."""
    added = Additions([], {}, [])
    if progress.failed:
        return added
    for name, step in progress.open.items():
        if step.items is not None and step.added < step.items and room > len(added.calls):
            _add_items(progress, progress.steps[name], step.added, room - len(added.calls), added)
    waits = 0
    for name in progress.ready:
        step_ = progress.steps[name]
        left = room - len(added.calls) + waits
        if left <= 0 and not step_.wait:
            break
        try:
            _begin(progress, step_, left, added)
        except ValueError as error:
            ended = StepEnded(
                step=name, status="failed", error_code="invalid_expression", error=str(error)
            )
            added.ended.append(ended)
        waits += bool(step_.wait)
    return added


def _begin(progress: Progress, step: Step, room: int, added: Additions) -> None:
    """Add the first calls of *step*, or its end without one.

    Raises:
        ValueError: an expression of it has no value.
    """
    needs = [progress.over[name] for name in progress.needs[step.name]]
    context = _context(progress, progress.needs[step.name])
    if why := _unfit(step, needs):
        failing = ", ".join(n for n in progress.needs[step.name] if _failed(progress.over[n]))
        skipped = StepEnded(step=step.name, status="skipped", error_code=why, error=failing)
        added.ended.append(skipped)
    elif step.when and not holds(step.when, context):
        added.ended.append(StepEnded(step=step.name, status="skipped", error_code="not_wanted"))
    elif step.for_each:
        items = _items(step, context)
        if items:
            added.items[step.name] = len(items)
            _add_items(progress, step, 0, room, added)
        else:
            added.ended.append(StepEnded(step=step.name, status="completed"))
    else:
        arguments = rendered(step.arguments, context)
        added.calls.append(ToolCall(id=step.name, name=step.name, arguments=arguments))


def _unfit(step: Step, needs: list[StepResult]) -> str:
    """Return why the ends of the steps that it needs skip *step*; empty if they do not."""
    match step.condition:
        case "on_success" if any(each.status != "completed" for each in needs):
            return "need_not_completed"
        case "on_issues_found" if not any(map(_found_issues, needs)):
            return "no_issues_found"
        case _:
            return ""


def _failed(result: StepResult) -> bool:
    return result.status != "completed"


def _found_issues(result: StepResult) -> bool:
    """Whether the structured verdict of a step says so; words in its text say nothing."""
    values = result.value if isinstance(result.value, list) else [result.value]
    told = [each for each in values if isinstance(each, dict)]
    return result.status == "completed" and any(
        each.get("verdict") == "issues_found" or bool(each.get("issues")) for each in told
    )


def _items(step: Step, context: Context) -> list[JsonValue]:
    items = evaluated(step.for_each, context)
    if not isinstance(items, list):
        raise ValueError(f"for_each {step.for_each!r} is {items!r:.80}, and no list")  # noqa: TRY004 - a value of the plan's data
    return items


def _add_items(progress: Progress, step: Step, begin: int, room: int, added: Additions) -> None:
    """Add calls for the items of *step* from *begin* on; an expression that fails ends it."""
    context = _context(progress, progress.needs[step.name])
    items = _items(step, context)
    for index in range(begin, min(len(items), begin + max(room, 0))):
        here = {**context, "item": items[index], "index": index}
        problem, arguments = None, Arguments()
        try:
            arguments = rendered(step.arguments, here)
        except ValueError as error:
            problem = str(error)
        added.calls.append(
            ToolCall(
                id=f"{step.name}[{index}]", name=step.name, arguments=arguments, problem=problem
            )
        )


def _context(progress: Progress, names: tuple[str, ...]) -> Context:
    steps = {name: _view(progress.over[name]) for name in names if name in progress.over}
    return {"input": progress.parameters, "steps": steps}


def _view(result: StepResult) -> dict[str, JsonValue]:
    return {
        "status": result.status,
        "value": result.value,
        "text": result.text,
        "error": result.error,
        "error_code": result.error_code,
    }


def end_of(plan: Plan, progress: Progress) -> PlanEnd:
    """Return how a plan ended in which nothing is left to do."""
    if progress.failed:
        failed = progress.over[progress.failed]
        why = f"step {progress.failed}: {failed.error_code}: {failed.error}"
        return PlanEnd(error_code="step_failed", error=why)
    if plan.output:
        try:
            value = evaluated(plan.output, _context(progress, steps_in(plan.output)))
        except ValueError as error:
            return PlanEnd(error_code="invalid_output", error=str(error))
        end = PlanEnd(value, text_of(value), is_null=value is None)
    else:
        ends = (progress.over[step.name] for step in reversed(plan.steps))
        last = next((end for end in ends if not _failed(end)), StepResult("skipped"))
        value = None if isinstance(last.value, str) else last.value
        end = PlanEnd(value, last.text, is_null=last.value is None)
    if (size := len(end.text.encode(errors="replace"))) > VALUE_LIMIT:
        return PlanEnd(error_code="result_too_large", error=too_large("the output", size))
    return end
