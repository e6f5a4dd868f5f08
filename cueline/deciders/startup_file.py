"""Files that a later start reads or runs: a call that may write one asks, whatever the policy says.

They are settings, agent files, the modules of the agent's own tools, git's hooks and settings, and
the start-up files of shells, editors and continuous integration.
"""

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from cueline.deciders.pattern import escape_glob, path_matches
from cueline.events.agent import AgentSpec, Rule, ToolSpec
from cueline.events.message import Arguments

ASKS: Final = Rule(name="read at a start", answer="ask")
_FOLDERS: Final = frozenset(
    (
        *(".git", ".githooks", ".husky", ".config", ".ssh", ".devcontainer"),
        *(".github", ".gitlab", ".circleci", ".buildkite", ".woodpecker", ".ci"),
        *(".vscode", ".idea", ".zed", ".vim", ".emacs.d"),
    )
)
_NAMES: Final = frozenset(
    (
        *(".gitconfig", ".gitmodules", ".gitattributes", ".pre-commit-config.yaml", ".mcp.json"),
        *(".env", ".envrc", ".profile", ".login", ".inputrc", ".tmux.conf", ".npmrc"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"),
        *(".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".dir-locals.el"),
        *(".gitlab-ci.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml", "jenkinsfile"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml"),
        *("sitecustomize.py", "usercustomize.py"),
    )
)
_ENDINGS: Final = (".toml", ".pth", ".code-workspace")
_RUNS: Final = "command"
"""The argument that is a shell command, by its name."""
_WORDS = re.compile(r"[^\s;|&<>()'\"`={}]+")
_CONFIGURES = re.compile(r"\bgit\b.*\bconfig\b|\bcrontab\b", re.DOTALL)
_LONGEST = 4096
"""The longest path of Linux; a longer text names no file."""


def own_modules(agent: AgentSpec) -> tuple[str, ...]:
    """Return globs for the modules of the agent's tools, without those that cueline ships."""
    return _modules_of(tuple(tool.target for tool in agent.tools))


@lru_cache(maxsize=256)
def _modules_of(targets: tuple[str, ...]) -> tuple[str, ...]:
    modules = sorted({target.rpartition(":")[0] for target in targets})
    return tuple(glob for module in modules for glob in _globs(module))


def _globs(module: str) -> Iterator[str]:
    if module.endswith(".py"):
        yield escape_glob(module)
    elif module and not module.startswith(("cueline.", "agent:")):
        path = module.replace(".", "/")
        yield from (f"**/{path}.py", f"**/{path}/__init__.py")


def writes_startup_file(
    tool: ToolSpec, arguments: Arguments, modules: tuple[str, ...], place: str
) -> bool:
    """Whether the call may write a file that a later start reads or runs.

    Args:
        tool: only calls of tools that are not read-only write.
        arguments: of the call.
        modules: globs for the modules of the agent's own tools.
        place: the workspace; paths are relative to it.
    """
    if tool.declared == "read_only":
        return False
    command = arguments.get(_RUNS)
    if isinstance(command, str) and _CONFIGURES.search(command):
        return True
    return any(_is_startup_file(each, modules, place) for each in _paths(tool, arguments))


def _paths(tool: ToolSpec, arguments: Arguments) -> Iterator[str]:
    """Yield what may be a path: declared ones, else each text, and the words of a command."""
    named = (*tool.paths, *(tool.writes or ())[:1]) or tuple(arguments)
    for name in named:
        given = arguments.get(name)
        for text in given if isinstance(given, list) else (given,):
            if not isinstance(text, str):
                continue
            if name == _RUNS:
                yield from _WORDS.findall(text)
            elif len(text) <= _LONGEST:
                yield text


def _is_startup_file(path: str, modules: tuple[str, ...], place: str) -> bool:
    # Some file systems ignore case.
    names = posixpath.normpath(path.casefold()).split("/")
    if names[-1] in _NAMES or names[-1].endswith(_ENDINGS) or not _FOLDERS.isdisjoint(names):
        return True
    return bool(modules) and path_matches(path, modules, place)
