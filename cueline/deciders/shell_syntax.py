"""The commands and words that a shell finds in a text, by a grammar of Bash (ADR 0046)."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node

PART: Final = "\0"
"""Stands for a part of a word that only the shell knows, such as `"$X"`."""
WORDS: Final = "\1"
"""Stands for any number of words that only the shell knows, such as `$X`, `*` or `$(ls)`."""

_LONGEST: Final = 10_000
"""The parser takes linear time, but after some errors quadratic time."""
_PLAIN: Final = re.compile(r"[\w./:,@%+= -]*", re.ASCII)
_MISREAD: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    r"|\n[ \t]*\\|(?<=\S)\\\n\S"
)
"""Where the grammar separates words unlike a shell, and our own marks."""
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

    Output to a file is a command `>` with the file.
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
    """Return a word as the command gets it."""
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
    """Whether *before* a `#` is what makes it a part of a word."""
    return before[-1:] not in b" \t\n;&|(" or before[:-1] == b"\\"
