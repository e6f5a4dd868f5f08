"""Prints the size of the package: files and lines of code, by room.

A line of code is a line with a token. Blank lines, comments, docstrings and imports are left out.
`testing` is listed below the sum: it is for the tests of programs that use cueline.
"""

import ast
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "cueline"
APART = "testing"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def _left_out(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of imports and docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        parts: list[ast.stmt] = []
        if isinstance(node, ast.Import | ast.ImportFrom):
            parts = [node]
        elif isinstance(node, documented):
            # A text that stands alone documents the module, class, function or field.
            parts = [
                each
                for each in node.body
                if isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ]
        for part in parts:
            yield from range(part.lineno, (part.end_lineno or part.lineno) + 1)


def lines_of_code(path: Path) -> int:
    """Return how many lines of *path* hold code."""
    with tokenize.open(path) as file:
        source = file.read()
    held: set[int] = set()
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type not in _LAYOUT:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - set(_left_out(ast.parse(source))))


def sizes(package: Path = PACKAGE) -> tuple[Counter[str], Counter[str]]:
    """Return the files and the lines of code by room; a module at the root counts as `root`."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        room = parts[0] if len(parts) > 1 else "root"
        files[room] += 1
        lines[room] += lines_of_code(path)
    return files, lines


def main() -> None:
    """Print one line for each room, the largest first."""
    files, lines = sizes()
    apart = (files.pop(APART), lines.pop(APART))
    rows = [(room, files[room], count) for room, count in lines.most_common()]
    rows += [("cueline", files.total(), lines.total()), (APART, *apart)]
    print(f"{'room':<12}{'files':>7}{'lines of code':>15}")
    for room, number, count in rows:
        print(f"{room:<12}{number:>7,}{count:>15,}")


if __name__ == "__main__":
    main()
