"""Computes the next steps of a plan, and finds the faults of a plan before it runs."""

from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from pydantic import JsonValue

from cueline.deciders.expression import (
    FUNCTIONS,
    STEPS,
    Context,
    compiled,
    evaluated,
    expressions_in,
    functions_of,
    holds,
    needs_of,
    paths_of,
    reason,
    rendered,
    steps_in,
)
from cueline.deciders.plan_progress import Progress, StepResult
from cueline.errors.suggestion import known_instead
from cueline.events.agent_parts import VALUE_LIMIT, Plan, Step, too_large
from cueline.events.fact import text_of
from cueline.events.message import Arguments, ToolCall
from cueline.events.session import StepEnded


class Additions(NamedTuple):
    """The steps of a plan that begin now, and the steps that end without a call."""

    calls: list[ToolCall]
    items: dict[str, int]
    ended: list[StepEnded]


class PlanEnd(NamedTuple):
    """The result of a plan, or the reason why the plan has no result."""

    value: JsonValue = None
    """The value of the result; None: the value is the text, or null."""
    text: str = ""
    is_null: bool = False
    error_code: str = ""
    error: str = ""


def additions(progress: Progress, room: int) -> Additions:
    """Return the steps that may begin now: at most *room* calls, and all waits for messages."""
    added = Additions([], {}, [])
    if progress.failed:
        return added
    for name, step in progress.open.items():
        if step.items is not None and step.added < step.items and room > len(added.calls):
            _add_items(progress, progress.steps[name], step.added, room - len(added.calls), added)
    waits = 0
    for name in progress.ready:
        step_ = progress.steps[name]
        calls = len(added.calls)
        left = room - calls + waits
        if left <= 0 and not step_.wait:
            break
        try:
            _begin(progress, step_, left, added)
        except ValueError as error:
            ended = StepEnded(
                step=name, status="failed", error_code="invalid_expression", error=str(error)
            )
            added.ended.append(ended)
        if step_.wait:  # if it is skipped, it is no call
            waits += len(added.calls) - calls
    return added


def _begin(progress: Progress, step: Step, room: int, added: Additions) -> None:
    """Add the first calls of *step* to *added*, or the step's end without a call.

    Raises:
        ValueError: an expression of the step has no value.
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
    """Return why *step* is skipped after the outcomes of the steps that it needs; else empty."""
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
    """Whether the value of a step reports issues, by its fields; a text reports none."""
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
    """Add calls for the items of *step* from *begin* on; a failing expression ends the item."""
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
    """Return the result or failure of a plan without open or possible steps."""
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


RESULT: Final = ("status", "value", "text", "error", "error_code")
"""The fields of a step's result that expressions can read."""
_DATA: Final = ("input", STEPS)
_EACH: Final = ("item", "index")


class PlanProblem(NamedTuple):
    """One fault of a plan, and the key with the fault, such as `steps.build.when`."""

    key: str
    reason: str


def problems_of(
    plan: Plan,
    *,
    tools: Collection[str] | None = None,
    parameters: Collection[str] | None = None,
) -> list[PlanProblem]:
    """Return all faults of *plan*; empty for a valid plan.

    Args:
        plan: the plan to check.
        tools: the names of the agent's tools, if they are known.
        parameters: the only parameters of the plan's sessions, if they are known.
    """
    names = [step.name for step in plan.steps]
    found = [] if names else [PlanProblem(STEPS, "there is none: add one")]
    for at, step in enumerate(plan.steps):
        wrong = list(_of_step(step, names, parameters))
        if step.name in names[:at]:
            wrong.append(("name", "two steps have this name"))
        if tools is not None and not step.wait and step.name not in tools:
            wrong.append(("tool", "name a tool, an agent, or a message that it waits for"))
        found += [PlanProblem(f"{STEPS}.{step.name}.{key}", why) for key, why in wrong]
    found += [PlanProblem("output", why) for why in _of(plan.output, names, parameters)]
    if found:
        return found
    try:
        TopologicalSorter({step.name: needs_of(step) for step in plan.steps}).prepare()
    except CycleError as error:
        circle = " needs ".join(reversed(error.args[1]))
        return [PlanProblem(STEPS, f"they wait for each other: {circle}")]
    return []


def _of_step(
    step: Step, names: Collection[str], parameters: Collection[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield the faults of one step, by key."""
    if not (step.name.isidentifier() and step.name.isascii()):
        yield "name", "use letters, digits and underscores, and begin with a letter"
    if step.wait and (step.arguments or step.for_each):
        yield "wait", "a step that waits for a message has no arguments and no `for_each`"
    for key in ("when", "for_each"):
        yield from ((key, why) for why in _of(getattr(step, key), names, parameters))
    try:
        expressions = list(expressions_in(step.arguments))
    except ValueError as error:
        yield "arguments", str(error)
        return
    roots = (*_DATA, *_EACH) if step.for_each else _DATA
    for each in expressions:
        yield from (("arguments", why) for why in _of(each or " ", names, parameters, roots))
    read = needs_of(step.model_copy(update={"needs": ()}))
    for name in step.needs:
        if name not in names and name not in read:
            yield "needs", f"there is no step {name!r}{known_instead(name, names)}"
    if step.name in needs_of(step):
        yield "needs", "it needs itself"


def _of(
    expression: str,
    names: Collection[str],
    parameters: Collection[str] | None,
    roots: Collection[str] = _DATA,
) -> Iterator[str]:
    """Yield the faults of one expression; nothing for an empty expression."""
    if not expression:
        return
    try:
        compiled(expression)
    except ValueError as error:
        yield f"{expression!r}: {reason(error)}"
    for name in functions_of(expression):
        if name not in FUNCTIONS:
            yield f"{expression!r}: there is no function {name!r}{known_instead(name, FUNCTIONS)}"
    for root, *rest in paths_of(expression):
        if root not in roots and root in _EACH:
            yield f"{expression!r}: only the arguments of a step with `for_each` have {root!r}"
        elif root not in roots:
            yield f"{expression!r}: {root!r} is unknown{known_instead(root, roots)}"
        elif root == STEPS:
            yield from (f"{expression!r}: {why}" for why in _of_result(rest, names))
        elif root == "input" and rest and parameters is not None and rest[0] not in parameters:
            known = known_instead(rest[0], parameters)
            yield f"{expression!r}: there is no parameter {rest[0]!r}{known}"


def _of_result(path: list[str], names: Collection[str]) -> Iterator[str]:
    if not path:
        yield "it names no step: write `steps.NAME.value`"
    elif path[0] not in names:
        yield f"there is no step {path[0]!r}{known_instead(path[0], names)}"
    elif path[1:] and path[1] not in RESULT:
        yield f"a step has no {path[1]!r}{known_instead(path[1], RESULT)}"
