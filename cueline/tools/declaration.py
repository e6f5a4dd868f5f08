"""Checks each part of a tool's declaration.

Each function raises `ConfigError` for a wrong part; the message shows the correct form.
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Literal, get_args

from cueline.errors import ConfigError
from cueline.events.agent import Declared
from cueline.events.agent_parts import Preset, RetryPolicy
from cueline.tools.schema import subject

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Function = Callable[..., object]
Transient = tuple[type[Exception], ...]


def name_of(function: Function, name: str | None) -> str:
    """Return the tool's name for the model."""
    try:
        return checked_name(function.__name__ if name is None else name)
    except ValueError as error:
        raise ConfigError(subject(function), str(error)) from None


def checked_name(name: str) -> str:
    """Return *name*.

    Raises:
        ValueError: it is no name for a tool; the message shows the correct form.
    """
    if NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name for a tool: take up to 64 of a-z, A-Z, 0-9, _ and -")
    return name


def declaration(
    function: Function, *, read_only: bool, idempotent: bool, reconcile: Function | None
) -> Declared:
    """Return the keyword that declares whether calls may be repeated; `nothing` without one."""
    if reconcile is not None:
        _check_callable(function, "reconcile is called with a key", reconcile, "key")
    said: dict[Literal["read_only", "idempotent", "reconcile"], bool] = {
        "read_only": read_only,
        "idempotent": idempotent,
        "reconcile": reconcile is not None,
    }
    declared = [word for word, is_said in said.items() if is_said]
    if len(declared) > 1:
        reason = f"declare at most one of read_only, idempotent, reconcile; not {declared}"
        raise ConfigError(subject(function), reason)
    return declared[0] if declared else "nothing"


def retries_of(function: Function, retry: RetryPolicy | str | None) -> RetryPolicy | None:
    """Return the tool's retry policy; None if the tool has no separate policy."""
    if not isinstance(retry, str):
        return retry
    try:
        return RetryPolicy.named(retry)
    except ValueError:
        presets = ", ".join(get_args(Preset))
        raise ConfigError(subject(function), f"retry is {retry!r}; presets are {presets}") from None


def exceptions(function: Function, transient: object) -> Transient:
    """Return the transient exceptions as a tuple for `except`."""
    kinds = tuple(transient) if isinstance(transient, tuple | list) else (transient,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ConfigError(subject(function), f"transient has {kind!r}, which is no exception")
    return kinds


def positive(function: Function, seconds: float) -> float:
    """Return *seconds* as a time-out."""
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        reason = f"timeout_seconds is {seconds!r}; it must be a positive number"
        raise ConfigError(subject(function), reason)
    return float(seconds)


def cost_of(
    function: Function, usd: Decimal | str | Function | None, names: Sequence[str]
) -> tuple[Decimal | None, Function | None]:
    """Return the estimated cost of each call, or the function that estimates it."""
    if usd is None:
        return None, None
    if callable(usd):
        return None, _estimator(function, usd, names)
    try:
        return dollars(usd), None
    except ValueError as error:
        raise ConfigError(subject(function), f"cost_usd is {error}") from None


def _estimator(function: Function, estimator: Function, names: Sequence[str]) -> Function:
    said = f"cost_usd is called with the tool's arguments, {', '.join(names)}"
    _check_callable(function, said, estimator, **dict.fromkeys(names))
    return estimator


def _check_callable(
    function: Function, said: str, asked: Function, *values: object, **named: object
) -> None:
    # Checked now: a later error would come after a crash, or at the estimate of a cost.
    try:
        inspect.signature(asked).bind(*values, **named)
    except TypeError as error:
        raise ConfigError(subject(function), f"{said}: {error}") from None


def dollars(usd: object) -> Decimal:
    """Return *usd* as an amount of US dollars.

    Raises:
        ValueError: *usd* is no amount; the message shows the correct form.
    """
    try:
        amount = Decimal(str(usd))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{usd!r}; say it as in '0.25'")
    return amount


def check_named(function: Function, names: Sequence[str]) -> None:
    """Raise for names that are no arguments."""
    known = inspect.signature(function).parameters
    for name in names:
        if name not in known:
            raise ConfigError(subject(function), f"it has no argument {name!r}")


def as_words(function: Function, keyword: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return *words* as a tuple."""
    if isinstance(words, str):
        raise ConfigError(subject(function), f"{keyword} is {words!r}; say it as in [{words!r}]")
    return tuple(words)
