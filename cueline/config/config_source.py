"""Reads one source of settings: a TOML table, the environment, or a command's flags.

A wrong key or value raises `ConfigError` with the key or value in its message.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, TypeAdapter

from cueline.config.config_file import ELSEWHERE, set_in
from cueline.config.problem import TOO_DEEP, SettingProblem, problems_of, unknown
from cueline.config.settings import Setting, Settings, leaves, table_of
from cueline.errors import ConfigError
from cueline.errors.suggestion import closest
from cueline.events.agent_parts import RetryPolicy
from cueline.files import read_text_file
from cueline.providers.defaults import find_model_file

T = TypeVar("T")


class SourcedValue(NamedTuple):
    """A setting's value and its origin."""

    value: Any
    source: str


ConfigSource = Mapping[str, SourcedValue]
"""The values of one source, by key."""


PRESET = "CUELINE_RETRY"
"""The variable that names a retry preset."""
Flags = Mapping[str, tuple[str, object]]
"""The flag and the typed value of each setting, by key; the value is None without the flag."""


def from_flags(flags: Flags) -> ConfigSource:
    """Return the settings that *flags* give."""
    layer = {}
    for key, (flag, value) in flags.items():
        if value is not None:
            leaf = leaves()[key]
            read = leaf.read_text if isinstance(value, str) else leaf.read
            layer[key] = SourcedValue(_read(read, value, flag, leaf.kind), f"flag {flag}")
    return layer


def from_environment(environ: Mapping[str, str]) -> ConfigSource:
    """Return the settings in the environment; an empty variable counts as not set."""
    known = {leaf.variable: leaf for leaf in leaves().values() if leaf.variable}
    layer = _preset(environ)
    for name in set_in(environ):
        if name == PRESET:
            continue
        if name not in known:
            near = closest(name, [*known, PRESET, *ELSEWHERE], cutoff=0)[0]
            raise ConfigError(name, f"there is no such setting; the nearest is {near}")
        leaf = known[name]
        value = _read(leaf.read_text, environ[name], name, leaf.kind)
        layer[leaf.key] = SourcedValue(value, f"environment {name}")
    return layer


def _preset(environ: Mapping[str, str]) -> dict[str, SourcedValue]:
    """Return the settings of the retry preset that the variable `CUELINE_RETRY` names."""
    name = environ.get(PRESET)
    if not name:
        return {}
    said = _read(lambda preset: _as_table(preset, RetryPolicy), name, PRESET, RetryPolicy)
    return {f"retry.{key}": SourcedValue(said[key], f"environment {PRESET}") for key in said}


def from_file(path: Path) -> ConfigSource:
    """Return the settings of the `cueline.toml` at *path*; a log's path is relative to the file."""
    table = read_toml(path, "settings file")
    users = table.get("users")
    for asks in (table, *(users.values() if isinstance(users, dict) else ())):
        find_model_file(asks, path.parent)
    layer = dict(from_table(table, path))
    if "log" in layer:
        layer["log"] = SourcedValue(layer["log"].value.within(path.parent), layer["log"].source)
    return layer


def of_user(file: ConfigSource, user: str) -> ConfigSource:
    """Return the settings for *user* in *file*, which precede the file's settings for all users."""
    if "users" not in file or user not in file["users"].value:
        return {}
    said, source = file["users"].value[user].model_dump(exclude_unset=True), file["users"].source
    return {key: SourcedValue(value, f"{source} [users.{user}]") for key, value in said.items()}


def from_table(table: Mapping[str, Any], path: Path) -> ConfigSource:
    """Return the settings in *table*, the content of the file *path*."""
    layer, problems = read_table(table, path)
    if problems:
        raise ConfigError(str(path), str(problems[0]))
    return layer


def read_table(table: Mapping[str, Any], path: Path) -> tuple[ConfigSource, list[SettingProblem]]:
    """Return the settings in *table*, the content of the file *path*, and all problems."""
    layer: dict[str, SourcedValue] = {}
    problems: list[SettingProblem] = []
    for leaf, value in _flat(table, Settings, "", problems):
        try:
            layer[leaf.key] = SourcedValue(leaf.read(value), path.name)
        except ValueError as error:
            problems += problems_of(error, leaf.kind, leaf.key)
    return layer, problems


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the content of the TOML file *path*; *what* names the file in errors."""
    try:
        text = read_text_file(path)
    except FileNotFoundError as error:
        raise ConfigError(str(path), f"there is no such {what}") from error
    except OSError as error:
        raise ConfigError(str(path), f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "it is no text in UTF-8") from error
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(str(path), TOO_DEEP) from error
    except ValueError as error:  # a number that is too long is no error of TOML's own
        raise ConfigError(str(path), f"it is not TOML: {error}") from error


def _flat(
    table: Mapping[str, Any], shape: type[BaseModel], above: str, problems: list[SettingProblem]
) -> Iterator[tuple[Setting, Any]]:
    """Yield each setting in *table* with its raw value; append unknown keys to *problems*."""
    for name, value in table.items():
        key = f"{above}{name}"
        field = shape.model_fields.get(name)
        if field is None:
            problems.append(unknown(key, shape, _meant(key)))
        elif (inner := table_of(field)) is None:
            yield leaves()[key], value
        else:
            try:
                said = _as_table(value, inner)
            except ValueError as error:
                problems += problems_of(error, inner, key)
            else:
                yield from _flat(said, inner, f"{key}.", problems)


def _meant(key: str) -> str | None:
    """Return the known key that the unknown *key* probably means; None without a similar key."""
    name = key.rpartition(".")[2]
    elsewhere = [each for each in leaves() if each.endswith(f".{name}")]
    return next(iter([*elsewhere, *closest(key, leaves(), cutoff=0.8)]), None)


def _as_table(value: Any, shape: type[BaseModel]) -> Mapping[str, Any]:
    """Return *value* as a table of *shape*; the value may be a name, as in `retry = "exact"`."""
    if isinstance(value, Mapping):
        return value
    return TypeAdapter(shape).validate_python(value).model_dump(exclude_unset=True)


def _read(read: Callable[[Any], T], value: Any, subject: str, kind: Any) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise ConfigError(subject, problems_of(error, kind)[0].reason) from error
