"""Computes the effective settings: for each key, the value of the first source that has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cueline.config.config_source import ConfigSource, SourcedValue
from cueline.config.settings import ADDED, OF_PROVIDER, Settings
from cueline.deciders.policy_fault import faults
from cueline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """The effective settings, with the origin of each value that is no default."""

    settings: Settings
    given: ConfigSource

    @property
    def sources(self) -> dict[str, str]:
        """The origin of each value that is no default, by key."""
        return {key: each.source for key, each in sorted(self.given.items())}


def effective(*layers: ConfigSource) -> EffectiveSettings:
    """Return the effective settings; earlier *layers* take precedence over later ones.

    Raises:
        ConfigError: two values contradict each other.
    """
    given: dict[str, SourcedValue] = {}
    for layer in _of_one_provider(layers):
        for key, each in layer.items():
            given[key] = (
                _both(given[key], each) if key in given and key in ADDED else (given.get(key, each))
            )
    holds = EffectiveSettings(Settings.model_validate(_nested(given)), given)
    for key, reason in faults(holds.settings.policy):
        raise _apart(f"policy.{key}", reason, given)
    removal, grace = holds.settings.cluster.removal_seconds, holds.settings.grace_seconds
    if removal < 2 * grace:
        reason = (
            f"{removal:g} s is less than twice `grace_seconds`, which is {grace:g} s: a runner "
            "that hears nothing for half the removal time ends, also while it is drained"
        )
        raise _apart("cluster.removal_seconds", reason, given, "grace_seconds")
    stale, interval = holds.settings.cluster.stale_seconds, holds.settings.cluster.heartbeat_seconds
    if not 3 * interval <= stale < removal:
        reason = (
            f"{stale:g} s is not at least three times `cluster.heartbeat_seconds`, which is "
            f"{interval:g} s, and less than `cluster.removal_seconds`, which is {removal:g} s"
        )
        raise _apart("cluster.stale_seconds", reason, given)
    return holds


def _apart(key: str, reason: str, given: ConfigSource, *others: str) -> ConfigError:
    """Return the error for contradicting values of key's table and *others*, with their origins."""
    tables = (key.partition(".")[0], *others)
    concerned = {each.source for name, each in given.items() if name.startswith(tables)}
    return ConfigError(", ".join(sorted(concerned)), f"key {key!r}: {reason}")


def _of_one_provider(layers: Sequence[ConfigSource]) -> Iterator[ConfigSource]:
    """Yield *layers* without values for a provider other than the effective one.

    With these values, the key for one vendor would be sent to another vendor.
    """
    named = [layer["provider"].value if "provider" in layer else None for layer in layers]
    holds = next(filter(None, named), None)
    for number, layer in enumerate(layers):
        meant = next(filter(None, named[number:]), holds)
        yield layer if meant == holds else {k: v for k, v in layer.items() if k not in OF_PROVIDER}


def _both(first: SourcedValue, second: SourcedValue) -> SourcedValue:
    """Return the combined value of a setting from two sources."""
    if isinstance(first.value, Mapping):
        value: Any = {**second.value, **first.value}
    else:
        value = tuple(dict.fromkeys([*first.value, *second.value]))
    return SourcedValue(value, f"{first.source}, {second.source}")


def _nested(given: ConfigSource) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, (value, _) in given.items():
        *tables, name = key.split(".")
        inner = table
        for each in tables:
            inner = inner.setdefault(each, {})
        inner[name] = value
    return table
