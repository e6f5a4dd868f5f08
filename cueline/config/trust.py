"""Separates the values of a found settings file that apply before a person trusts the file.

The author of a folder may have written the file. Until the person who runs cueline there
trusts the file, only values that permit no more than before apply: no address, key, hook,
price, weaker approval, higher limit, or log elsewhere.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from cueline.config.config_source import ConfigSource, SourcedValue
from cueline.config.settings import Settings
from cueline.providers.registry import DEFAULT, OWN

_HARMLESS: Final = (
    "approval.",
    "breaker.",
    "cluster.",
    "grace_seconds",
    "hide_thinking",
    "policy.approval_seconds",
    "policy.on_expiry",
    "policy.rules",  # of all rules that match, the strictest counts
    "retry.",
    "runner.slots",
    "runner.workers",
    "secrets",  # those of all sources count
    "tool_retry",
)
_LESS: Final = ("limits.", "policy.notify_from_usd", "policy.ask_from_usd", "policy.deny_from_usd")
"""The keys for which a lower value is stricter."""
_STRICT: Final[dict[str, Callable[[Any], bool]]] = {
    "fallback": lambda said: (
        all(each.provider in OWN for each in said)
        and not any(e.base_url or e.key_variable or e.headers or e.parameters for e in said)
    ),
    "on_unknown_price": lambda said: said == "error",
    "policy.approval": lambda said: said != ("off",),
    "policy.auto_approve": lambda said: not said,
    "policy.in_doubt": lambda said: said == "ask",
    "policy.on_deny": lambda said: said != "inform",
}
"""The tests, by key, whether a value is at least as strict as any former value."""
_MODEL: Final = ("provider", "model")
"""The keys that apply only for built-in providers: another provider's model may be code."""
_TOGETHER: Final = ("policy.rules", "policy.approval")
"""The keys whose rules and profiles are added to the existing rules and profiles."""


class FoundSettings(NamedTuple):
    """The settings of a found file: those that apply at once, and those that need trust."""

    counts: ConfigSource
    wider: ConfigSource
    """The settings that apply once a person trusts the file."""


def found_settings(file: ConfigSource, path: Path, below: Settings) -> FoundSettings:
    """Return the settings of the *file* found at *path*, which precede the settings *below*."""
    counts, wider = {}, {}
    if "model" in file and "provider" not in file:
        # Else it would be the model of any provider that a later layer chooses.
        held = SourcedValue(below.provider or DEFAULT, file["model"].source)
        file = {**file, "provider": held}
    # Without a provider beside them, they would go to the one that the file names.
    is_free = below.provider is None and (below.base_url or below.key_variable or below.headers)
    known = (DEFAULT,) if is_free else OWN
    harmless = "provider" in file and file["provider"].value in known
    for key, each in file.items():
        held = _held(below, key)
        if key in _MODEL and harmless:
            counts[key] = each
        elif not (each.value == held or _widens_nothing(key, each.value, held, path)):
            wider[key] = each
        elif key in _TOGETHER:
            both = dict.fromkeys((*held, *each.value))
            both.pop("off", None)
            if key == "policy.approval" and "approval" not in below.policy.model_fields_set:
                both["cost"] = None  # it holds with a limit of cost, unless profiles are set
            counts[key] = each._replace(value=tuple(both))
        else:
            counts[key] = each
    return FoundSettings(counts, wider)


def _held(below: Settings, key: str) -> Any:
    value: Any = below
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _widens_nothing(key: str, said: Any, held: Any, path: Path) -> bool:
    if key == "log":
        folder = path.parent.resolve()
        return said.scheme == "sqlite" and Path(said.rest).resolve().is_relative_to(folder)
    if key.startswith(_LESS):
        return held is None or said <= held
    return key.startswith(_HARMLESS) or (key in _STRICT and _STRICT[key](said))
