"""The built-in tools."""

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.tools.files import delete_file, list_files, read_file, search_files, write_file
from cueline.tools.shell import run_command
from cueline.tools.tool import Tool


def builtin_tools() -> dict[str, Tool]:
    """Return the built-in tools by their names in an agent's file."""
    tools = (read_file, write_file, list_files, search_files, delete_file, run_command)
    return {tool.name: tool for tool in tools}


def shipped_tool(name: str, agent: str) -> Tool:
    """Return the tool *name* of the file of *agent*.

    Raises:
        ConfigError: there is no such tool.
    """
    shipped = builtin_tools()
    if name not in shipped:
        known = known_instead(name, sorted(shipped), "shipped are")
        raise ConfigError(agent, f"key 'tools': {name!r} is unknown{known}, others are module:name")
    return shipped[name]
