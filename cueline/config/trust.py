"""What a settings file that was found may say before a person trusts it: what is stricter.

A file that comes with a folder is the folder's word. Until the person who runs cueline there
trusts it, only what widens nothing counts: no address, key, hook, price, weaker approval,
higher limit, or log elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from cueline.config.config_source import ConfigSource, SourcedValue
from cueline.config.settings import Settings
from cueline.errors import ConfigError
from cueline.private_folder import make_folder
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
"""Where less is stricter."""
_STRICT: Final[dict[str, Callable[[Any], bool]]] = {
    "fallback": lambda said: (
        all(each.provider in OWN for each in said)
        and not any(each.base_url or each.key_variable or each.headers for each in said)
    ),
    "on_unknown_price": lambda said: said == "error",
    "policy.approval": lambda said: said != ("off",),
    "policy.auto_approve": lambda said: not said,
    "policy.in_doubt": lambda said: said == "ask",
    "policy.on_deny": lambda said: said != "inform",
}
"""By key: whether a value widens nothing, whatever held before."""
_MODEL: Final = ("provider", "model")
"""What counts for cueline's own providers: the model of another may be a file with code."""
_TOGETHER: Final = ("policy.rules", "policy.approval")
"""Rules and profiles that hold already go on holding."""


class FoundSettings(NamedTuple):
    """The settings of a file that was found, in two parts."""

    counts: ConfigSource
    wider: ConfigSource
    """What counts once a person trusts the file."""


def found_settings(file: ConfigSource, path: Path, below: Settings) -> FoundSettings:
    """Return the settings of the *file* that was found at *path*, before those *below* it."""
    counts, wider = {}, {}
    if "model" in file and "provider" not in file:
        # Else it would be the model of whatever provider holds in the end.
        held = SourcedValue(below.provider or DEFAULT, file["model"].source)
        file = {**file, "provider": held}
    harmless = "provider" in file and file["provider"].value in OWN
    for key, each in file.items():
        held = _held(below, key)
        if key in _MODEL and harmless:
            counts[key] = each
        elif not (each.value == held or _widens_nothing(key, each.value, held, path)):
            wider[key] = each
        elif key in _TOGETHER:
            both = dict.fromkeys((*held, *each.value))
            both.pop("off", None)
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


@dataclass(frozen=True, slots=True)
class Trust:
    """The files that a person trusts, each as it was then; they are noted in *folder*.

    A log changes with its use, so it is noted by its path alone.
    """

    folder: Path | None
    """None: there is no place for it, and nothing is trusted."""

    def holds(self, path: Path, content: bytes = b"") -> bool:
        """Whether the file at *path* is trusted, with this *content*."""
        note = self._note(path)
        try:
            return note is not None and note.read_text() == sha256(content).hexdigest()
        except OSError:
            return False

    def add(self, path: Path, content: bytes = b"") -> None:
        """Trust the file at *path*, with this *content*.

        Raises:
            ConfigError: it cannot be noted; make the folder that it names writable.
        """
        note = self._note(path)
        if note is None:
            raise ConfigError("HOME", "is not set, so there is no place for what you trust; set it")
        try:
            make_folder(note.parent)
            note.write_text(sha256(content).hexdigest())
        except OSError as error:
            reason = f"what you trust cannot be noted there: {error.strerror}; make it writable"
            raise ConfigError(str(note.parent), reason) from error

    def remove(self, path: Path) -> bool:
        """Trust the file at *path* no more; return whether it was trusted."""
        note = self._note(path)
        known = note is not None and note.exists()
        if note is not None and known:
            note.unlink()
        return known

    def _note(self, path: Path) -> Path | None:
        name = sha256(str(path.resolve()).encode(errors="surrogateescape")).hexdigest()
        return None if self.folder is None else self.folder / "trusted" / name
