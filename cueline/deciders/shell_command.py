"""Finds the simple commands that a shell command runs (ADR 0046)."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

PART: Final = "\0"
"""The mark for a part of a word that only the shell can expand, such as `"$X"`."""
WORDS: Final = "\1"
"""The mark for any number of words that only the shell can expand: `$X`, `*`, `$(ls)` …"""

_LONGEST: Final = 10_000
"""The length of the longest parsed command: after some errors, parsing takes quadratic time."""
_PLAIN: Final = re.compile(r"[\w./:,@%+= -]*", re.ASCII)
_MISREAD: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    r"|\n[ \t]*\\|(?<=\S)\\\n\S"
)
"""The texts whose words the grammar separates differently from a shell, and the marks above."""
_LITERAL: Final = re.compile(r"(?:[^\\*?\[]|\\.)*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:\n|(.))", re.DOTALL)
_ESCAPE_IN_QUOTES: Final = re.compile(r"\\(?:\n|([$`\"\\]))")
_QUERY: Final = r"""
[(command) (declaration_command) (unset_command) (test_command)] @command
(file_redirect [">" ">>" ">|" "&>" "&>>" ">&"] . destination: (_) @file)
(file_redirect destination: (_) . destination: (_) @misread)
(heredoc_redirect argument: (_) @misread)
((heredoc_redirect) @misread (#match? @misread "\\\\\n"))
(comment) @comment
"""
_NO_FILES: Final = ("/dev/null", "/dev/stdout", "/dev/stderr", "-", "1", "2")


def parse(text: str) -> tuple[list[tuple[str, ...]], bool]:
    """Return the words of each simple command in *text*, and whether all were understood.

    An output redirection becomes a command `>` with the file.
    """
    if len(text) > _LONGEST:
        return [], False
    if _PLAIN.fullmatch(text):
        words = tuple(text.split())
        return [words] if words else [], True
    if _MISREAD.search(text):
        return [], False
    source = text.encode(errors="replace")
    found, has_error = _grammar()(source)
    commands = [
        tuple(_value(each) for each in node.children if "redirect" not in each.type)
        for node in found.get("command", ())
    ]
    commands += [
        (">", file) for file in map(_value, found.get("file", ())) if file not in _NO_FILES
    ]
    starts = [
        source[max(0, each.start_byte - 2) : each.start_byte] for each in found.get("comment", ())
    ]
    return commands, not (has_error or "misread" in found or any(map(_no_comment, starts)))


@cache
def _grammar() -> "Callable[[bytes], tuple[dict[str, list[Node]], bool]]":
    import tree_sitter_bash  # noqa: PLC0415 - few policies have rules about commands
    from tree_sitter import Language, Parser, Query, QueryCursor  # noqa: PLC0415 - as above

    language = Language(tree_sitter_bash.language())
    query = Query(language, _QUERY)

    def find(source: bytes) -> "tuple[dict[str, list[Node]], bool]":
        root = Parser(language).parse(source).root_node
        return QueryCursor(query).captures(root), root.has_error

    return find


def _value(node: "Node") -> str:
    """Return the word of *node* without quotes and escapes, as the command gets the word."""
    text = (node.text or b"").decode()
    match node.type:
        case "word" | "number" | "variable_name":
            known = _LITERAL.findall(text)[0]
            return _ESCAPE.sub(r"\1", known) + (WORDS if known != text else "")
        case "command_name":
            return _value(node.children[0])
        case "variable_assignment":
            return "".join(map(_value, node.children))
        case "raw_string":
            return text[1:-1]
        case "string":
            known = "".join(map(_value, node.children[1:-1]))
            return known if "@" in text else known.replace(WORDS, PART)
        case "string_content":
            return _ESCAPE_IN_QUOTES.sub(r"\1", text)
        case "concatenation" if "{" not in text or ("," not in text and ".." not in text):
            return "".join(map(_value, node.children))
        case _:
            return WORDS if node.is_named else text


def _no_comment(before: bytes) -> bool:
    """Whether the text *before* a `#` makes the `#` a part of a word."""
    return before[-1:] not in b" \t\n;&|(" or before[:-1] == b"\\"


Words = tuple[str, ...]

COMMANDS: Final = ("command", "cmd")
"""The arguments that are shell commands, by their names."""
_MOST, _DEEPEST, _WIDEST = 500, 12, 20
_SHELLS: Final = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "source", ".")
_RUN_THEIR_INPUT: Final = frozenset((*_SHELLS, "sudo", "doas", "chroot"))
_JOIN_WORDS: Final = frozenset(("eval", "ssh", "watch"))
_RUN_ANYTHING = "alias at batch coproc expect parallel runuser screen script sg su tmux"
_SYNTAX = "! { } case do done elif else esac fi for function if in select then until while"
_ANYTHING: Final = frozenset(f"{_RUN_ANYTHING} {_SYNTAX}".split())
"""Programs that may run any of their arguments, and words of the syntax, which are no programs."""
_NONE_BEFORE = "builtin busybox command doas env eval exec git ionice nice nohup setsid stdbuf"
_NONE_BEFORE += " pkexec strace sudo systemd-run time trap unbuffer unshare watch xargs"
_WRAPPERS: Final = {  # and the number of arguments before the command
    **dict.fromkeys((*_SHELLS, *_NONE_BEFORE.split()), 0),
    **dict.fromkeys(("chroot", "chrt", "flock", "ssh", "taskset", "timeout"), 1),
}
_WITH_VALUE: Final = {  # where these options are known; elsewhere each may have a value
    **dict.fromkeys(_SHELLS, ("-o", "-O", "+o", "+O", "--rcfile", "--init-file")),
    "git": ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"),
}
_ASSIGNMENT: Final = re.compile(r"\w+\+?=")
_EXECUTE: Final = ("-exec", "-execdir", "-ok", "-okdir")
_UNKNOWN: Final = re.compile(f"[{PART}{WORDS}]")
_SCRIPT: Final = re.compile(r"[^\w./:,@%+=-]")
_ANY_COMMAND: Final = re.compile(
    r"\S+ /(?:dev|proc)/|env -(?:\w*S|-split)|xargs -(?:[IJi]|-replace)"
    r"|(?:\w*sh|sudo|doas|source|\.) -(?:\w*s\w*)?$|(?!git )\S+ -.*[^\w./:,@%+=-]"
)
"""The pattern of a program with an option that runs another command."""


class SimpleCommand(NamedTuple):
    """A program or builtin with its arguments, or `>` with the file of a redirection."""

    words: Words
    text: str
    """The words before the first unknown word, as a text."""
    is_known: bool
    """Whether all words are known."""
    is_written: bool
    """Whether the command is as written, without a removed path, wrapper or option."""
    is_innermost: bool = True


UNKNOWN: Final = SimpleCommand((WORDS,), "", is_known=False, is_written=True)
"""A command that cannot be resolved, and may be one or several arbitrary commands."""


def commands_of(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the arguments that are shell commands."""
    rest = arguments.get("args")
    after = f" {shlex.join(map(str, rest))}" if isinstance(rest, list) else ""
    for given in map(arguments.get, COMMANDS):
        if given is not None:
            yield (shlex.join(map(str, given)) if isinstance(given, list) else str(given)) + after


@lru_cache(maxsize=512)
def simple_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands in *text*, and the commands that these run."""
    found = tuple(islice(_commands_in(text, _DEEPEST, is_written=True), _MOST))
    return (*found, UNKNOWN) if len(found) == _MOST else found


def _commands_in(text: str, deep: int, *, is_written: bool) -> Iterator[SimpleCommand]:
    commands, understood = parse(text)
    for words in commands:
        yield from _unwrapped(words, deep, is_written=is_written)
    if not understood:
        yield UNKNOWN


def _unwrapped(words: Words, deep: int, *, is_written: bool) -> Iterator[SimpleCommand]:
    """Yield a command as written, and the commands that it runs."""
    inner = list(islice(_inner(words), _WIDEST))
    if len(inner) == _WIDEST:
        inner[-1] = (WORDS,)
    whole = " ".join(words)
    known = _UNKNOWN.split(whole, maxsplit=1)[0]
    yield SimpleCommand(words, known, known == whole, is_written, not inner)
    for each in inner:
        if not deep or WORDS in each[0]:
            yield UNKNOWN
        elif _SCRIPT.search(each[0]):
            yield from _commands_in(each[0], deep - 1, is_written=False)
        else:
            yield from _unwrapped(each, deep - 1, is_written=False)


def _inner(words: Words) -> Iterator[Words]:
    name, plain = words[0], words[0].rpartition("/")[2]
    if _ASSIGNMENT.match(name):
        rest = next((words[i:] for i, each in enumerate(words) if not _ASSIGNMENT.match(each)), ())
        yield from [rest] if rest else ()
    elif WORDS in name or name in _ANYTHING:
        yield (WORDS,)
    elif plain != name:
        yield (plain, *words[1:])
    elif name == "find":
        for start in (i for i, each in enumerate(words, 1) if each in _EXECUTE):
            ran = takewhile(lambda each: each not in (";", "+"), words[start:])
            yield tuple(each.replace("{}", PART) for each in ran) or (WORDS,)
    elif name == "git":
        yield from (("git", *each) for each in _operands(words) if each != words[1:])
    elif name in _WRAPPERS:
        found = list(_operands(words))
        if not found and name in _RUN_THEIR_INPUT:
            yield (WORDS,)
        for each in found:
            yield (" ".join(each),) if name in _JOIN_WORDS else each + (WORDS,) * (name == "xargs")


def _operands(words: Words) -> Iterator[Words]:
    """Yield the commands that a wrapper may run, depending on its options."""
    name, before, with_value = words[0], _WRAPPERS[words[0]], _WITH_VALUE.get(words[0], ())
    surely = possibly = 0
    may_be_value = False
    rest = iter(enumerate(words[1:], 1))
    for start, word in rest:
        value = next(rest, (0, ""))[1] if word in with_value else ""
        if _ANY_COMMAND.match(f"{name} {word}") or WORDS in word + value or "alias." in value:
            yield (WORDS,)
            return
        if word == "--":
            yield words[start + 1 :] or (WORDS,)
            return
        if not (word[:1] in ("-", "+") or _ASSIGNMENT.match(word)):
            if possibly >= before:
                yield words[start:]
            if not may_be_value and surely >= before:
                return
            surely += not may_be_value
            possibly += 1
        may_be_value = word[:1] == "-" and not with_value
