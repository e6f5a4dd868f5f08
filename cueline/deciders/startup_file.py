"""Finds calls that may write a file which a later start reads or runs; such calls always ask.

These files are settings, agent files, the modules of the agent's own tools, git's hooks
and settings, and the start-up files of shells, editors and continuous integration.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from cueline.deciders.pattern import escape_glob, named_paths, path_matches, texts_of
from cueline.deciders.shell_command import (
    COMMANDS,
    UNKNOWN,
    SimpleCommand,
    commands_of,
    simple_commands,
)
from cueline.events.agent import SCHEMES, AgentSpec, Rule, ToolSpec
from cueline.events.message import Arguments
from cueline.linear_regex import compile_regex

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
_NAMES_FILES = re.compile(r"[^\s;|&<>()'\"`={}\0\1]+")
_QUOTES: Final = re.compile(r"\\\n|[\"'\\]")
_SUSPECT: Final = compile_regex(
    "|".join(map(re.escape, (*_FOLDERS, *_NAMES, *_ENDINGS, "config", "crontab")))
)
_READERS: Final = frozenset(
    (
        *("cat", "head", "tail", "nl", "tac", "wc", "grep", "egrep", "fgrep", "rg", "cut", "jq"),
        *("ls", "stat", "file", "du", "diff", "cmp", "md5sum", "sha1sum", "sha256sum"),
        *("echo", "printf", "pwd", "test", "basename", "dirname", "realpath", "readlink"),
    )
)
_GIT_READERS: Final = frozenset(
    ("status", "log", "show", "diff", "blame", "ls-files", "add", "commit")
)
_READING_OPTIONS: Final = frozenset(("-l", "--list", "--get", "--get-all"))
_OF_COMMITS: Final = re.compile(
    r"\.git/((objects|refs|logs)(/.*)?|index|packed-refs|[A-Z]+_HEAD|HEAD|COMMIT_EDITMSG)"
)
"""What a commit of git writes, none of which git runs; a new `.git` may name another folder."""
_LONGEST = 4096
"""The length of the longest path on Linux; a longer text names no file."""


def own_modules(agent: AgentSpec) -> tuple[str, ...]:
    """Return globs for the modules of the agent's tools, without modules that cueline ships."""
    return _modules_of(tuple(tool.target for tool in agent.tools))


@lru_cache(maxsize=256)
def _modules_of(targets: tuple[str, ...]) -> tuple[str, ...]:
    code = (target for target in targets if not target.startswith(SCHEMES))
    modules = sorted({target.rpartition(":")[0].casefold() for target in code})
    return tuple(glob for module in modules for glob in _globs(module))


def _globs(module: str) -> Iterator[str]:
    if module.endswith(".py"):
        yield escape_glob(module)
    elif module and not module.startswith("cueline."):
        path = module.replace(".", "/")
        yield from (f"**/{path}.py", f"**/{path}/__init__.py")


def writes_startup_file(
    tool: ToolSpec, arguments: Arguments, modules: tuple[str, ...], place: str
) -> bool:
    """Whether the call may write a file that a later start reads or runs.

    Args:
        tool: the tool; a call of a read-only tool writes nothing.
        arguments: the arguments of the call.
        modules: globs for the modules of the agent's own tools.
        place: the workspace; paths are relative to it.
    """
    if tool.declared == "read_only":
        return False
    return any(_is_startup_file(each, modules, place) for each in _paths(tool, arguments, modules))


def changes_startup_file(paths: Iterable[str], modules: tuple[str, ...], place: str) -> bool:
    """Whether one of the changed *paths* is a file that a later start reads or runs.

    What a commit of git writes is none.
    """
    return any(
        not _OF_COMMITS.fullmatch(each) and _is_startup_file(each, modules, place) for each in paths
    )


def _paths(tool: ToolSpec, arguments: Arguments, modules: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths that a call may write: its paths or texts, and files in its commands."""
    names = (*tool.paths, *(tool.writes or ())[:1]) or tuple(arguments)
    given = named_paths(tool, arguments, (each for each in names if each not in COMMANDS))
    yield from (text for text in texts_of(given) if len(text) <= _LONGEST)
    for text in commands_of(arguments):
        plain = _QUOTES.sub("", text).casefold()
        named = any(each.rpartition("/")[2].casefold() in plain for each in modules)
        for command in simple_commands(text) if named or _SUSPECT(plain) else ():
            yield from _NAMES_FILES.findall(text if command is UNKNOWN else _may_write(command))


def _may_write(command: SimpleCommand) -> str:
    """Return a text with the names of the files that *command* may write."""
    name, *rest = command.words
    if not command.is_innermost or name in _READERS:
        return name
    if name == "git" and rest[:1] and rest[0] in _GIT_READERS:
        return " ".join(each for each in rest if each.startswith("--output"))
    if name == "crontab" or (name == "git" and rest[:1] == ["config"]):
        reads = rest[1:2] in (["get"], ["list"]) or not _READING_OPTIONS.isdisjoint(rest)
        return "" if reads else ".gitconfig"
    return " ".join(command.words)


def _is_startup_file(path: str, modules: tuple[str, ...], place: str) -> bool:
    # Some file systems ignore case.
    names = posixpath.normpath(path.casefold()).split("/")
    if names[-1] in _NAMES or names[-1].endswith(_ENDINGS) or not _FOLDERS.isdisjoint(names):
        return True
    return bool(modules) and path_matches(path.casefold(), modules, place.casefold())
