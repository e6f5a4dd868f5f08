"""Finds what is wrong with a plan before it runs."""

from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from cueline.deciders.expression import (
    FUNCTIONS,
    STEPS,
    compiled,
    expressions_in,
    functions_of,
    needs_of,
    paths_of,
    reason,
)
from cueline.errors.suggestion import known_instead
from cueline.events.plan import Plan, Step

RESULT: Final = ("status", "value", "text", "error", "error_code")
"""What expressions can read of a step."""
_DATA: Final = ("input", STEPS)
_EACH: Final = ("item", "index")


class PlanProblem(NamedTuple):
    """One problem, and the key that has it, such as `steps.build.when`."""

    key: str
    reason: str


def problems_of(
    plan: Plan,
    *,
    tools: Collection[str] | None = None,
    parameters: Collection[str] | None = None,
) -> list[PlanProblem]:
    """Return everything that is wrong with *plan*; nothing if it can run.

    Args:
        plan: the plan to check.
        tools: the names of the agent's tools, if they are known.
        parameters: the only parameters that a session of it takes, if they are known.
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
    """Yield what is wrong with one step, by key."""
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
    """Yield what is wrong with one expression; an empty one is none."""
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
