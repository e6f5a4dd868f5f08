"""Which mutations of the rules and the actors the tests notice; run by hand.

    python -m tests.mutations --seed 1 --count 300 --commit HEAD~1

A mutation is one changed comparison, connective, number, truth value or returned value, or one
removed statement. Its name is that of the function and a number in it, and a draw depends on the
names alone: the same seed draws the same mutations before and after files are moved. Each is
made in a copy of the tree, where the tests run that a coverage map knows to run its line. The
output is a line for each mutation, then those that no test noticed, and the share of the others.
"""

import argparse
import ast
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from queue import Queue

import coverage

ROOMS = ("cueline/deciders", "cueline/actors")
OTHERS = (
    *("ray", "torture", "stores", "bench", "adapters", "providers"),
    *("test_makefile.py", "test_wheel.py", "test_docs.py", "test_bench.py", "test_examples.py"),
)
"""The tests that run these rooms in other processes, or for their own purpose."""
STEPS = (2.0, 20.0, 120.0)
"""The seconds of tests that a mutation is shown to: more if they did not notice."""
SLOWER = 5
"""A test that takes so many times as long as without the mutation hangs."""
START_SECONDS = 60
WANTED = "MUTATION_TESTS"
TIMES = "MUTATION_TIMES"

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Position = tuple[int, int]
"""A line, from 1, and the byte in it."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one function."""

    name: str
    """Of the function, the kind of change and its number there."""
    path: str
    start: Position
    end: Position
    line: int
    """Where the statement begins."""
    before: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """Return *source*, which is the text of `path`, with the change."""
        lines = source.splitlines(keepends=True)
        (first, left), (last, right) = self.start, self.end
        changed = lines[first - 1][:left] + self.after.encode() + lines[last - 1][right:]
        return b"".join([*lines[: first - 1], changed, *lines[last:]])

    def __str__(self) -> str:
        return f"{self.path}:{self.start[0]}  {self.name}  {self.before} -> {self.after}"


def mutations(tree: Path, rooms=ROOMS) -> list[Mutation]:
    """Return all mutations of *rooms*, each with a name of its own."""
    found = []
    for room in rooms:
        for file in sorted((tree / room).rglob("*.py")):
            path = str(file.relative_to(tree))
            found += mutations_of(file.read_bytes(), path)
    # The same name in two rooms, or files: the narrowest that tells them apart.
    for place in (lambda each: str(Path(each.path).parent), lambda each: each.path):
        times = Counter(each.name for each in found)
        found = [
            replace(each, name=f"{place(each)} {each.name}") if times[each.name] > 1 else each
            for each in found
        ]
    return found


def mutations_of(source: bytes, path: str) -> list[Mutation]:
    """Return the mutations of the functions of one file."""
    numbers: Counter[str] = Counter()
    found = []
    for qualified, statement, node, kind, changed in _changes(ast.parse(source), ""):
        name = f"{qualified} {kind}"
        numbers[name] += 1
        before, after = (" ".join(ast.unparse(each).split()) for each in (node, changed))
        found.append(
            Mutation(
                name=f"{name} {numbers[name]}",
                path=path,
                start=(node.lineno, node.col_offset),
                end=(node.end_lineno, node.end_col_offset),
                line=statement.lineno,
                before=before if len(before) <= 70 else f"{before[:69]}…",
                after=after if isinstance(changed, ast.stmt) else f"({after})",
            )
        )
    return found


def _changes(node, qualified, statement=None, *, runs=False) -> Iterator[tuple]:
    """Yield function, statement, node, kind and what becomes of the node, for what is beneath.

    Only what *runs* in a function counts.
    """
    for child in _children(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{qualified}.{child.name}" if qualified else child.name
            yield from _changes(child, name, runs=isinstance(child, FUNCTIONS))
            continue
        here = child if isinstance(child, ast.stmt) else statement
        for kind, changed in _variants(child) if runs else ():
            yield qualified, here, child, kind, changed
        yield from _changes(child, qualified, here, runs=runs)


def _children(node) -> Iterator[ast.AST]:
    """Yield what is run of *node*; not its types, defaults, decorators, patterns and texts."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        yield from [node.value] if node.value is not None else []
    elif not isinstance(node, (ast.Assert, ast.JoinedStr, ast.pattern)):
        yield from ast.iter_child_nodes(node)


def _variants(node) -> Iterator[tuple[str, ast.AST]]:  # noqa: C901 - a table of what is mutated
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                changed = deepcopy(node)
                changed.ops[index] = COMPARISONS[type(operator)]()
                yield "comparison", changed
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "boolean", ast.BoolOp(other, node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", node.operand
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.Return(value=ast.expr()) if not _is_false(node.value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Constant()):
            pass
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield "removed", ast.Pass()
        case ast.Break() | ast.Continue():
            yield "removed", ast.Pass()
        case ast.Assign() if not all(isinstance(each, ast.Name) for each in node.targets):
            yield "removed", ast.Pass()


def _is_false(node) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def draw(found: list[Mutation], *, seed: int, count: int) -> list[Mutation]:
    """Return *count* of them: by their names, so that a new one moves hardly any other."""

    def place(each: Mutation) -> str:
        return hashlib.sha256(f"{seed} {each.name}".encode()).hexdigest()

    return sorted(found, key=place)[:count]


def copy_tree(repository: Path, commit: str, folder: Path) -> None:
    """Put the tree of *commit* into *folder*."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", commit]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


class CoverageMap:
    """Which tests run a line, and how long they take."""

    def __init__(self, tree: Path, rooms=ROOMS) -> None:
        self._tree = tree
        self._rooms = rooms
        self._data = coverage.CoverageData(str(tree / ".coverage"))
        self._times_file = tree / ".times.json"
        self._lines: dict[str, dict[int, list[str]]] = {}

    def make(self, leave_out=OTHERS, workers=2) -> None:
        """Run all tests once, unless that was done here before."""
        if not self._times_file.exists():
            settings = self._tree / ".coveragerc"
            settings.write_text(f"[run]\nsource = {','.join(self._rooms)}\n")
            run_tests(
                self._tree,
                *("-n", str(workers), "-q", "--cov", f"--cov-config={settings}", "--cov-report="),
                *("--cov-context=test", *(f"--ignore=tests/{each}" for each in leave_out)),
                env={TIMES: str(self._times_file)},
            )
        self._data.read()
        self._times: dict[str, float] = json.loads(self._times_file.read_text())

    def tests_of(self, mutation: Mutation) -> list[str]:
        """Return those that passed and run the line of *mutation*, the fastest first."""
        file = str(self._tree / mutation.path)
        if file not in self._lines:
            self._lines[file] = self._data.contexts_by_lineno(file)
        lines = self._lines[file]
        inside = range(mutation.start[0], mutation.end[0] + 1)
        traced = [line for line in inside if line in lines] or [mutation.line]
        tests = {each.rpartition("|")[0] for line in traced for each in lines.get(line, ())}
        return sorted(tests & self._times.keys(), key=lambda test: (self._times[test], test))

    def steps(self, tests: list[str]) -> Iterator[tuple[list[str], float]]:
        """Yield parts of *tests*, each of more seconds than the one before, with these."""
        rest = tests
        for limit in STEPS:
            part, seconds = [], 0.0
            while rest and (not part or seconds + self._times[rest[0]] <= limit):
                seconds += self._times[rest[0]]
                part.append(rest[0])
                rest = rest[1:]
            if part:
                yield part, seconds


def run_tests(tree: Path, *words: str, env: dict[str, str], seconds: float | None = None) -> int:
    """Run pytest in *tree*, and return its code; what takes more than *seconds* gets -1."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.mutations"]
    with subprocess.Popen(
        [*command, *words],
        cwd=tree,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | env,
        stdin=subprocess.DEVNULL,
        stdout=None if seconds is None else subprocess.DEVNULL,
        stderr=None if seconds is None else subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)  # so that it ends what it has started
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return -1


def judge(mutation: Mutation, tests: CoverageMap, tree: Path) -> str:
    """Return what the tests make of *mutation* in *tree*: killed, timeout, survived, uncovered."""
    file = tree / mutation.path
    source = file.read_bytes()
    wanted = tree / ".wanted.json"
    covering = tests.tests_of(mutation)
    _rewrite(file, mutation.apply(source))
    try:
        for part, seconds in tests.steps(covering):
            wanted.write_text(json.dumps(part))
            files = dict.fromkeys(test.partition("::")[0] for test in part)
            limit = START_SECONDS + SLOWER * seconds
            code = run_tests(tree, "-x", "-q", *files, env={WANTED: str(wanted)}, seconds=limit)
            if code:
                return "timeout" if code < 0 else "killed"
    finally:
        _rewrite(file, source)
    return "survived" if covering else "uncovered"


def _rewrite(file: Path, source: bytes) -> None:
    """Give *file* another text; its bytecode may be of the same second, and size."""
    file.write_bytes(source)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink(missing_ok=True)


def pytest_collection_modifyitems(config, items):
    """Run the wanted tests alone, in their order."""
    if WANTED in os.environ:
        wanted = {test: at for at, test in enumerate(json.loads(_text_of(WANTED)))}
        kept = [item for item in items if item.nodeid in wanted]
        items[:] = sorted(kept, key=lambda item: wanted[item.nodeid])


def _text_of(variable: str) -> str:
    return Path(os.environ[variable]).read_text()


_took: Counter[str] = Counter()
_failed: set[str] = set()


def pytest_runtest_logreport(report):
    _took[report.nodeid] += report.duration
    if report.outcome == "failed":
        _failed.add(report.nodeid)


def pytest_sessionfinish(session):
    """Keep the times of what passed, for the map."""
    if TIMES in os.environ and not hasattr(session.config, "workerinput"):
        passed = {test: took for test, took in _took.items() if test not in _failed}
        Path(os.environ[TIMES]).write_text(json.dumps(passed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--skip", type=int, default=0, help="of the drawn: another run had them")
    parser.add_argument("--commit", default="HEAD", help="of which tree")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keeps copy and map, for another draw")
    words = parser.parse_args()
    os.nice(10)
    folder = words.folder or Path(tempfile.mkdtemp(prefix="mutations-"))
    tree = folder / "tree"
    repository = Path(__file__).parents[1]
    if not tree.exists():
        copy_tree(repository, words.commit, tree)
        # The plugin is this file, whichever tests the tree has.
        (tree / "tests" / "mutations.py").write_bytes(Path(__file__).read_bytes())
    tests = CoverageMap(tree.resolve())
    tests.make()
    drawn = draw(mutations(tree), seed=words.seed, count=words.count)[words.skip :]
    trees: Queue[Path] = Queue()
    for _ in range(words.workers):
        copy = Path(tempfile.mkdtemp(prefix="worker-", dir=folder)) / "tree"
        shutil.copytree(tree, copy)
        trees.put(copy)

    verdicts: list[tuple[Mutation, str]] = []

    def judged(mutation: Mutation) -> None:
        copy = trees.get()
        try:
            verdict = judge(mutation, tests, copy)
        finally:
            trees.put(copy)
        print(f"{verdict:9}  {mutation}", flush=True)
        verdicts.append((mutation, verdict))

    with ThreadPoolExecutor(words.workers) as workers:
        for _ in workers.map(judged, drawn):
            pass
    report(verdicts)


def report(verdicts: list[tuple[Mutation, str]]) -> None:
    """Print who survived, and the rate of the others."""
    print("\nsurvivors:")
    for mutation, verdict in sorted(verdicts, key=lambda each: each[0].name):
        if verdict in {"survived", "uncovered"}:
            print(f"  {verdict:9}  {mutation}")
    counts = Counter(verdict for _, verdict in verdicts)
    killed = counts["killed"] + counts["timeout"]
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    print(f"killed: {killed} of {len(verdicts)} ({killed / len(verdicts):.1%}; {told})")


if __name__ == "__main__":
    main()
