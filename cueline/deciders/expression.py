"""Expressions of a plan: JMESPath over the parameters of a session and its steps' results."""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter
from pydantic import JsonValue

from cueline.events.agent_parts import Step
from cueline.events.fact import text_of

STEPS: Final = "steps"
_INNER: Final = {
    *("or_expression", "and_expression", "not_expression", "comparator"),
    *("function_expression", "multi_select_list", "multi_select_dict", "key_val_pair"),
}
"""The kinds of expression whose parts all read the same data as the whole."""
_CACHED: Final = 4096

FUNCTIONS: Final = tuple(sorted(Functions.FUNCTION_TABLE))


class _Parser(Parser):  # type: ignore[misc]  # jmespath has no types
    # `!a.b` is `!(a.b)`; the library's own binding reads `(!a).b`, which is never meant.
    BINDING_POWER: ClassVar = Parser.BINDING_POWER | {"not": 8}
    _CACHE: ClassVar[dict[str, Any]] = {}


class _Interpreter(TreeInterpreter):  # type: ignore[misc]  # jmespath has no types
    def visit_comparator(self, node: dict[str, Any], value: object) -> object:
        """Return null if the operands of `<` or `>` are no numbers, as in the specification."""
        if node["value"] not in self._EQUALITY_OPS:
            sides = [self.visit(each, value) for each in node["children"]]
            numbers = all(isinstance(n, int | float) and not isinstance(n, bool) for n in sides)
            return self.COMPARATOR_FUNC[node["value"]](*sides) if numbers else None
        return super().visit_comparator(node, value)

    def visit_function_expression(self, node: dict[str, Any], value: object) -> object:
        """Return the value of a function call; raise for infinity and NaN, which JSON lacks."""
        found = super().visit_function_expression(node, value)
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"{node['value']}: the number is not finite")
        return found


_INTERPRETER: Final = _Interpreter()

Context = Mapping[str, Any]
"""The data of an expression: `input`, `steps` by name and, in `for_each`, `item` and `index`."""


def evaluated(expression: str, context: Context) -> JsonValue:
    """Return the value of *expression*; null if it reads missing data.

    Raises:
        ValueError: the text is no expression, a function got a value of a wrong type, or a
            number is not finite.
    """
    try:
        found: JsonValue = _INTERPRETER.visit(compiled(expression).parsed, context)
    except Exception as error:  # the library raises a TypeError for some mixed lists
        raise ValueError(f"{expression!r}: {reason(error)}") from error
    return found


def holds(expression: str, context: Context) -> bool:
    """Return whether the value of *expression* is true: not false, null, or empty.

    Raises:
        ValueError: as `evaluated`.
    """
    found = evaluated(expression, context)
    return found is not False and found not in (None, "", [], {})


def rendered(arguments: Any, context: Context) -> Any:
    """Return *arguments* with the values of the expressions in their texts.

    A text that is one `{{ EXPRESSION }}` becomes the expression's value. Within other text, a
    value that is not a text is written as JSON.

    Raises:
        ValueError: as `evaluated`, or a `{{` has no `}}`.
    """
    if isinstance(arguments, list):
        return [rendered(each, context) for each in arguments]
    if isinstance(arguments, dict):
        return {key: rendered(each, context) for key, each in arguments.items()}
    if not isinstance(arguments, str):
        return arguments
    before, *rest = pieces(arguments)
    values = [evaluated(each, context) for each in rest[::2]]
    if len(values) == 1 and not before and not rest[1]:
        return values[0]
    return before + "".join(text_of(v) + after for v, after in zip(values, rest[1::2], strict=True))


def steps_in(expression: str) -> tuple[str, ...]:
    """Return the names of the steps that *expression* reads; empty for an invalid expression."""
    paths = paths_of(expression)
    return tuple(dict.fromkeys(path[1] for path in paths if path[0] == STEPS and path[1:]))


def needs_of(step: Step) -> tuple[str, ...]:
    """Return the steps that *step* needs: the named steps, and those its expressions read."""
    expressions = [step.when, step.for_each, *expressions_in(step.arguments)]
    read = [name for each in expressions for name in steps_in(each)]
    return tuple(dict.fromkeys([*step.needs, *read]))


def expressions_in(arguments: JsonValue) -> Iterator[str]:
    """Yield the expressions in the texts of *arguments*.

    Raises:
        ValueError: a `{{` has no `}}`.
    """
    if isinstance(arguments, str):
        yield from pieces(arguments)[1::2]
    elif isinstance(arguments, list | dict):
        for each in arguments.values() if isinstance(arguments, dict) else arguments:
            yield from expressions_in(each)


@lru_cache(_CACHED)
def compiled(expression: str) -> Any:
    """Return the parsed *expression*.

    Raises:
        ValueError: *expression* is invalid; `reason` has the cause.
    """
    try:
        return _Parser().parse(expression)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def reason(error: Exception) -> str:
    """Return the fault of an expression and, if known, the position of the faulty character."""
    at = getattr(error, "lex_position", None)
    if at is None:
        return str(error).removeprefix("Invalid JMESPath expression: ")
    token = getattr(error, "token_value", None)
    return f"unexpected {token!r} at character {at + 1}" if token else "it ends too early"


@lru_cache(_CACHED)
def pieces(text: str) -> tuple[str, ...]:
    """Return the plain texts and expressions of *text* alternately; the first and last are plain.

    An expression ends at the first `}}` before which it is valid, or else at the first `}}`.

    Raises:
        ValueError: a `{{` has no `}}`.
    """
    before, opened, rest = text.partition("{{")
    if not opened:
        return (text,)
    ends = [at for at in range(len(rest)) if rest.startswith("}}", at)]
    if not ends:
        raise ValueError(f"{text!r}: a `{{{{` has no `}}}}`")
    end = next((at for at in ends if _is_expression(rest[:at].strip())), ends[0])
    return (before, rest[:end].strip(), *pieces(rest[end + 2 :]))


def _is_expression(text: str) -> bool:
    try:
        compiled(text)
    except ValueError:
        return False
    return True


def paths_of(expression: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the data that *expression* reads, as `steps.a.value`."""
    return tuple(_paths(compiled(expression).parsed)) if _is_expression(expression) else ()


def functions_of(expression: str) -> Iterator[str]:
    """Yield the names of the functions that *expression* calls."""
    nodes = [compiled(expression).parsed] if _is_expression(expression) else []
    while nodes:
        node = nodes.pop()
        nodes += node["children"]
        if node["type"] == "function_expression":
            yield node["value"]


def _paths(node: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    kind, children = node["type"], node["children"]
    if kind in _INNER:
        for each in children:
            yield from _paths(each)
    elif kind in {"field", "subexpression"}:
        chain = children or [node]
        names: list[str] = []
        for each in chain[chain[0]["type"] == "current" :]:
            if each["type"] != "field":
                break
            names.append(each["value"])
        yield from [tuple(names)] if names else _paths(chain[0])
    elif children and kind != "expref":
        # The later children read the result of the first.
        yield from _paths(children[0])
