"""The JSON form of requests to a runner outside of the cluster, and of its answers.

Nothing else crosses the network: a runner cannot send an object that the server would run.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cueline.actors.runner import CallName, ToolReport
from cueline.actors.runner_desk import ActorReply, RunnerReply, RunnerRequest
from cueline.actors.tool_port import ReconcileFinding, ToolOrder
from cueline.errors import (
    ClusterError,
    ConfigError,
    CuelineError,
    RunnerBusyError,
    StaleOrderError,
)

_ABOUT: Final[dict[str, type[ToolOrder | CallName]]] = {
    "execute": ToolOrder,
    "reconcile": ToolOrder,
    "outcome": CallName,
    "cancel": CallName,
    "forget": CallName,
}
_VALUES: Final[dict[str, type[ToolReport | ReconcileFinding]]] = {
    "report": ToolReport,
    "finding": ReconcileFinding,
}
_ERRORS: Final[dict[str, tuple[type[CuelineError], Any]]] = {
    "RunnerBusyError": (RunnerBusyError, tuple[str]),
    "StaleOrderError": (StaleOrderError, tuple[str, str, int, int]),
    "": (ClusterError, tuple[str, str]),
}
"""The errors of a runner by name, with the types of their values; any other has no name."""


def json_of_request(request: RunnerRequest) -> dict[str, Any]:
    """Return the JSON form of *request*."""
    about = msgspec.to_builtins(request.about, enc_hook=lambda part: part.model_dump(mode="json"))
    return {"number": request.number, "verb": request.verb, "about": about}


def request_of(told: Mapping[str, Any]) -> RunnerRequest:
    """Return the request of its JSON form, from a server of the same version."""
    about = msgspec.convert(
        told["about"], _ABOUT[told["verb"]], dec_hook=lambda kind, part: kind.model_validate(part)
    )
    return RunnerRequest(told["number"], told["verb"], about)


def json_of_reply(reply: RunnerReply) -> dict[str, Any]:
    """Return the JSON form of *reply*."""
    told: dict[str, Any] = {"number": reply.number}
    value, error = reply.answer.value, reply.answer.error
    for name, kind in _VALUES.items():
        if isinstance(value, kind):
            told[name] = msgspec.to_builtins(value)
    if error is not None:
        name = type(error).__name__
        known = name in _ERRORS
        told["error"] = name if known else ""
        told["values"] = list(error.args) if known else [type(error).__name__, str(error)]
    return told


def reply_of(told: Mapping[str, Any]) -> RunnerReply:
    """Return the answer of its JSON form.

    Raises:
        ConfigError: the form is not one that `json_of_reply` returns.
    """
    try:
        number = msgspec.convert(told["number"], int)
        if "error" in told:
            kind, types = _ERRORS[told["error"]]
            error = kind(*msgspec.convert(told["values"], types))
            return RunnerReply(number, ActorReply(error=error))
        found = [msgspec.convert(told[n], kind) for n, kind in _VALUES.items() if n in told]
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        why = f"this is no answer of a runner: {type(error).__name__}: {error}"
        raise ConfigError("replies", why) from None
    return RunnerReply(number, ActorReply(found[0] if found else None))
