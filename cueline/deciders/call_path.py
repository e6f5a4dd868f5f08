"""The texts and paths in the arguments of a call."""

from collections.abc import Iterable, Iterator, Mapping

from cueline.events.agent import ToolSpec
from cueline.events.message import Arguments


def paths_of(tool: ToolSpec, arguments: Arguments) -> Iterator[str]:
    """Return the paths of the call; without declared paths, every text in the arguments."""
    return texts_of(named_paths(tool, arguments) if tool.paths else arguments)


def named_paths(
    tool: ToolSpec, arguments: Arguments, names: Iterable[str] | None = None
) -> dict[str, object]:
    """Return the arguments that *tool* declares as paths, or *names*; None for an unknown one."""
    wanted = tool.paths if names is None else names
    return {name: arguments.get(name, _default(tool, name)) for name in wanted}


def _default(tool: ToolSpec, name: str) -> object:
    """Return the tool's default for an omitted argument."""
    properties = tool.parameters.get("properties")
    told = properties.get(name) if isinstance(properties, Mapping) else None
    return told.get("default") if isinstance(told, Mapping) else None


def texts_of(value: object) -> Iterator[str]:
    """Yield the texts in *value*, at any depth."""
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from texts_of(item)
        case list() | tuple():
            for item in value:
                yield from texts_of(item)
