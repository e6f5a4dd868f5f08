"""Models that are files: their paths, and their content in a recorded agent."""

from pathlib import Path
from typing import TypeVar

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Fallback, ModelChoice
from cueline.providers.registry import provider_named

Asks = TypeVar("Asks", AgentSpec, Fallback, ModelChoice)


def find_model_file(table: object, folder: Path) -> None:
    """Make the path of a model in the *table* of a file relative to *folder*, if it is a file."""
    if not isinstance(table, dict):
        return
    provider, model = table.get("provider"), table.get("model")
    if isinstance(provider, str) and isinstance(model, str) and model and _is_file(provider):
        table["model"] = str(folder / model)


def with_model_file(asks: Asks) -> Asks:
    """Return *asks* with the content of its model's file, so that a resume needs no file.

    Raises:
        ConfigError: the provider is unknown, or the file cannot be used.
    """
    record = provider_named(asks.provider).record_file
    if record is None:
        return asks
    path = Path(asks.model)
    parameters = record(asks.parameters, path)
    if parameters == asks.parameters:
        return asks
    # The content is kept; its former path means nothing elsewhere.
    return asks.model_copy(update={"parameters": parameters, "model": path.name})


def _is_file(provider: str) -> bool:
    try:
        return provider_named(provider).record_file is not None
    except ConfigError:
        return False  # whoever uses it is told
