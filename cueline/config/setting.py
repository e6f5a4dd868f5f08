"""One setting: its key, its variable, and its valid values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeGuard, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from cueline.config.config_file import PREFIX
from cueline.config.settings import Settings

_RENAMED = {"limits.max_active_seconds": "CUELINE_TIME_BUDGET"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, for example `limits.max_turns`."""

    key: str
    field: FieldInfo

    @property
    def kind(self) -> Any:
        """The type of its values."""
        return self.field.annotation

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it accepts: one, or None and one, or some words."""
        choice = get_origin(self.kind) not in (None, tuple, dict)
        return get_args(self.kind) if choice else (self.kind,)

    @property
    def default(self) -> Any:
        """Its default value."""
        return self.field.get_default(call_default_factory=True)

    @property
    def variable(self) -> str | None:
        """The environment variable that sets it; None if only a file can."""
        if self._is_list and _is_model(get_args(self.kind)[0]):
            return None
        if get_origin(self.kind) is dict or any(map(_is_model, self.kinds)):
            return None
        name = self.key.removeprefix("limits.").replace(".", "_").upper()
        return _RENAMED.get(self.key, PREFIX + name)

    def read(self, value: object) -> Any:
        """Return *value* validated.

        Raises:
            ValueError: it is invalid.
        """
        return self._adapter.validate_python(value)

    def read_text(self, text: str) -> Any:
        """Return the value in *text*; commas separate the items of a list.

        Raises:
            ValueError: it is invalid.
        """
        if self._is_list:
            return self.read([word.strip() for word in text.split(",") if word.strip()])
        return self._adapter.validate_strings(text)

    @property
    def _is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def _adapter(self) -> TypeAdapter[Any]:
        kind: Any = self.kind
        for check in self.field.metadata:
            kind = Annotated[kind, check]
        return TypeAdapter(kind)


@cache
def leaves() -> Mapping[str, Setting]:
    """Return all settings, by key."""
    return {leaf.key: leaf for leaf in leaves_of(Settings)}


def leaves_of(shape: type[BaseModel], above: str = "") -> Iterator[Setting]:
    """Yield the settings of *shape* and of the tables in it."""
    for name, field in shape.model_fields.items():
        if (table := table_of(field)) is not None:
            yield from leaves_of(table, f"{above}{name}.")
        else:
            yield Setting(f"{above}{name}", field)


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the shape of the table that *field* is; None if it is none."""
    return field.annotation if _is_model(field.annotation) else None


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
