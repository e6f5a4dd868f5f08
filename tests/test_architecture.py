"""Who may import whom, and what each room may not touch."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

PORTS = {"actors", "events", "errors", "clock"}
LOCAL = {"files", "linear_regex"}
MAY_IMPORT = {
    "errors": set(),
    "clock": set(),
    "linear_regex": set(),
    "files": {"errors"},
    "sqlite_library": {"errors", "files"},
    "config": {"deciders", "events", "errors", "files", "providers"},
    "events": {"errors"},
    "deciders": {"events", "errors", "linear_regex"},
    "projections": {"events", "errors", "files", "sqlite_library"},
    "actors": {"deciders", "events", "errors", "clock"},
    "cluster": {"deciders", "runtime", *PORTS},
    "stores": {"events", "errors", "clock", "files", "projections", "sqlite_library"},
    "providers": PORTS | {"files"},
    "isolation": {"events", "errors", "files"},
    "telemetry": {"events", "errors", "clock", "projections"},
    "tools": PORTS | LOCAL | {"isolation"},
    "sandboxes": PORTS | LOCAL | {"isolation", "tools"},
    "console": PORTS - {"actors"} | {"client", "projections"},
    "agents": PORTS
    | {"config", "deciders", "files", "providers", "sqlite_library", "stores", "tools"},
    "runtime": PORTS
    | {"agents", "cluster", "config", "deciders", "files", "projections", "providers", "stores"}
    | {"tools"},
    "adapters": PORTS | {"agents", "clock", "providers", "stores", "tools"},
}
MAY_IMPORT |= {
    "client": {*MAY_IMPORT} - {"cluster", "console"},
    "testing": {*MAY_IMPORT},
    "cli": {*MAY_IMPORT, "client", "gateway"},
    "gateway": {
        "client",
        "clock",
        "config",
        "console",
        "deciders",
        "errors",
        "events",
        "projections",
    },
    "cueline": {*MAY_IMPORT, "client"} - {"cluster"},
}

# In actors and deciders only for the type of what is JSON, in providers of what is secret.
PYDANTIC = {
    "actors",
    "adapters",
    "agents",
    "cli",
    "client",
    "config",
    "deciders",
    "events",
    "linear_regex",
}
PYDANTIC |= {"gateway", "providers", "testing", "tools"}
HOMES = {
    "acp": {"cli", "gateway"},
    "ag_ui": {"gateway"},
    "anthropic": {"providers"},
    "cryptography": {"providers"},
    "docker": {"sandboxes"},
    "docstring_parser": {"tools"},
    "fastapi": {"gateway"},
    "genai_prices": {"providers"},
    "httpx2": {"agents", "gateway", "providers", "sandboxes", "tools"},
    "hypothesis": {"testing"},
    "langchain_core": {"adapters"},
    "langgraph": {"adapters"},
    "jinja2": {"gateway"},
    "jmespath": {"deciders"},
    "markdown_it": {"gateway"},
    "markupsafe": {"gateway"},
    "mcp": {"gateway", "tools"},
    "opentelemetry": {"telemetry"},
    "mcp_types": {"gateway", "tools"},
    "jsonschema_rs": {"tools"},
    "msgspec": PORTS
    | {"cli", "client", "deciders", "providers", "stores", "testing", "tools", "runtime"}
    | {"gateway", "sandboxes"},
    "pathspec": {"tools"},
    "pydantic": PYDANTIC,
    "pydantic_ai": {"adapters"},
    "pydantic_core": PYDANTIC,
    "pysqlite3": {"sqlite_library", "testing"},
    "pytest": {"testing"},
    "prompt_toolkit": {"console"},
    "psycopg": {"stores"},
    "ray": {"cluster"},
    "rich": {"cli", "console"},
    # Elsewhere than in the first two for the type of a connection.
    "sqlite3": {"sqlite_library", "testing", "stores", "projections", "client"},
    "sse_starlette": {"gateway"},
    "starlette": {"gateway"},
    "tree_sitter": {"deciders"},
    "tree_sitter_bash": {"deciders"},
    "typer": {"cli", "console"},
    "uvicorn": {"gateway"},
    "uvloop": {"runtime"},
    # The standard library's ways to the network.
    "http": set(),
    "socket": {"actors", "cluster", "isolation", "tools"},
    "urllib": set(),
}
OUTSIDE = "asyncio|io|logging|os|pathlib|random|secrets|socket|subprocess|threading|time|uuid"
EDGE = "providers"
MAY_SLEEP = {"cueline/clock.py", "cueline/testing/wait.py"}


class Import(NamedTuple):
    where: str
    room: str
    module: str
    lazy: bool

    @property
    def target(self) -> str:
        """Our room, or else the package of somebody else."""
        ours, _, rest = self.module.partition(".")
        return rest.split(".")[0] or ours if ours == "cueline" else ours


def files(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    for path in sorted(path for path in found if "node_modules" not in path.parts):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def nodes(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    for where, tree in files(*folders):
        yield from ((f"{where}:{getattr(n, 'lineno', 0)}", n) for n in ast.walk(tree))


def room_of(where: str) -> str:
    room = where.split("/")[1].removesuffix(".py")
    # What `python -m cueline` runs is the command line.
    return {"__init__": "cueline", "__main__": "cli"}.get(room, room)


def modules_in(node: ast.AST, *, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Tell each imported module, and whether only a call of a function imports it."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from ((alias.name, lazy) for alias in names)
            case ast.ImportFrom(module="cueline", names=names):
                rooms = (alias.name for alias in names)
                yield from ((f"cueline.{r}" if r in MAY_IMPORT else "cueline", lazy) for r in rooms)
            case ast.ImportFrom(module=module):
                yield str(module), lazy
            case _:
                inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from modules_in(child, lazy=lazy or inside)


IMPORTS = [
    Import(where, room_of(where), module, lazy)
    for where, tree in files("cueline")
    for module, lazy in modules_in(tree)
]
OURS = [i for i in IMPORTS if i.module.split(".")[0] == "cueline"]
THEIRS = [i for i in IMPORTS if i.module.split(".")[0] != "cueline"]


def test_every_module_is_in_a_room_of_the_table():
    assert set() == {where for where, _ in files("cueline") if room_of(where) not in MAY_IMPORT}


def test_a_room_imports_only_the_rooms_it_may():
    assert [] == [i for i in OURS if i.target not in {i.room, *MAY_IMPORT.get(i.room, ())}]


# 000-070, 002-011
def test_what_parses_and_renders_asks_the_client():
    shown = [i for i in OURS if i.room in {"cli", "console"}]

    assert [] == [i for i in shown if i.target in {"actors", "deciders", "stores"}]


def test_ray_is_loaded_only_when_the_cluster_is_asked_for():
    assert [] == [i for i in OURS if i.target == "cluster" != i.room and not i.lazy]


def test_a_third_party_package_is_imported_in_its_home_only():
    homeless = [i for i in THEIRS if i.target not in HOMES.keys() | sys.stdlib_module_names]
    astray = [i for i in THEIRS if i.room not in HOMES.get(i.target, {i.room})]

    assert [] == homeless + astray


def test_rules_import_nothing_that_reaches_outside():
    rules = [i for i in THEIRS if i.room == "deciders"]

    assert [] == [i for i in rules if re.fullmatch(OUTSIDE, i.target)]


def test_rules_are_not_async():
    coloured = ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith

    assert [] == [where for where, node in nodes("cueline/deciders") if isinstance(node, coloured)]


JUDGES = re.compile(
    r"cueline\.(deciders\.(policy|pattern|backtest|session\.(judging|failed_call))"
    r"|providers|console|events\.event_text)\b"
)


def submodules(where: str) -> Iterator[str]:
    """Name the modules of ours that the file *where* imports, also by `from room import module`."""
    for node in ast.walk(ast.parse((ROOT / where).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reached(module: str, known: set[str] | None = None) -> set[str]:
    """Return *module* and what it imports, directly or through others."""
    known = set() if known is None else known
    path = module.replace(".", "/")
    found = [where for where in (f"{path}.py", f"{path}/__init__.py") if (ROOT / where).exists()]
    if module not in known and found:
        known.add(module)
        for each in submodules(found[0]):
            reached(each, known)
    return known


@pytest.mark.parametrize("fold", ["session.evolve", "budget.evolve"])
def test_a_fold_reaches_no_rule_no_price_and_no_renderer(fold):
    assert set() == {m for m in reached(f"cueline.deciders.{fold}") if JUDGES.match(m)}


def test_deciding_reaches_the_rules():
    judges = {m for m in reached("cueline.deciders.session.decide") if JUDGES.match(m)}

    assert {"cueline.deciders.policy", "cueline.deciders.session.failed_call"} <= judges


def test_what_rules_decide_on_is_never_changed_in_place():
    made = [(where, n) for where, n in nodes("cueline/deciders") if isinstance(n, ast.ClassDef)]
    structs = [(w, n) for w, n in made if "Struct" in map(ast.unparse, n.bases)]
    said = {where: [ast.unparse(keyword) for keyword in n.keywords] for where, n in structs}

    assert said
    assert [] == [where for where, keywords in said.items() if "frozen=True" not in keywords]


def test_rules_and_facts_do_not_ask_what_time_it_is():
    attributes = [
        (where, node.attr)
        for where, node in nodes("cueline/deciders", "cueline/events")
        if isinstance(node, ast.Attribute)
    ]

    assert [] == [a for a in attributes if a[1] in {"now", "utcnow", "today"}]


def test_nothing_sleeps_but_the_clock_and_the_wait_for_a_fact():
    sleepers = [where for where, node in nodes("cueline", "tests") if sleeps(node)]

    assert [] == [where for where in sleepers if where.split(":")[0] not in MAY_SLEEP]


def sleeps(node: ast.AST) -> bool:
    """Say whether *node* waits for real time; asking a clock that was handed in does not."""
    match node:
        case ast.ImportFrom(names=names):
            return "sleep" in {alias.name for alias in names}
        case ast.Attribute(attr="sleep", value=asked):
            return not ast.unparse(asked).endswith("clock")
        case _:
            return False


def test_only_the_stores_know_what_a_log_is_kept_in():
    """ADR 0026: what is beside a log's file is asked of its backend."""
    asked = {"cueline.stores"} | {f"cueline.stores.{m}" for m in ("backend", "log_copy", "waiting")}
    outside = [i for i in OURS if i.target == "stores" and i.room not in {"stores", "testing"}]
    sources = [p for p in (ROOT / "cueline").rglob("*.py") if "stores" not in p.parts]
    kept = r"Sqlite(Store|Presence|Snapshots)\b|views_path"
    made = (
        kept + r"|\{(\w+\.)*(log|url)\}[-.]\w|Path\((str\()?(\w+\.)*(log|url)\b|\b(log|url)\.rest\b"
    )

    assert outside
    assert [] == [i for i in outside if i.module not in asked]
    assert [] == [(p.name, f[0]) for p in sources for f in re.finditer(made, p.read_text())]


VENDORS = "anthropic|claude|openai|gpt|gemini|ollama|llama|mistral|openrouter|vllm|deepseek"


# 000-005: in code, comments and docstrings alike.
def test_only_a_providers_own_room_names_a_vendor():
    rooms = [p for p in (ROOT / "cueline").rglob("*.py") if p.parts[len(ROOT.parts) + 1] != EDGE]
    named = [(p.name, f[0]) for p in rooms for f in re.finditer(f"(?i){VENDORS}", p.read_text())]

    assert rooms
    assert [] == named


def test_only_tools_for_tests_name_the_provider_of_scripts():
    named = [i for i in OURS if i.module.startswith("cueline.providers.scripted")]
    strings = [
        (where, node.value)
        for where, node in nodes("cueline")
        if isinstance(node, ast.Constant) and node.value == "scripted"
    ]

    assert {"providers", "testing"} == {i.room for i in named}
    assert {"cueline/providers/"} == {where[: len("cueline/providers/")] for where, _ in strings}


def test_errors_are_defined_in_one_room():
    classes = [(w, node.name) for w, node in nodes("cueline") if isinstance(node, ast.ClassDef)]
    errors = [(where, name) for where, name in classes if name.endswith(("Error", "Exception"))]

    assert [] == [error for error in errors if not error[0].startswith("cueline/errors/")]


def test_pip_installs_the_versions_that_uv_does():
    by_uv = re.findall(r'name = "(.+)"\nversion = "(.+)"', (ROOT / "uv.lock").read_text())
    pinned = [lock.read_text() for lock in ROOT.glob("requirements*.lock")]
    by_pip = re.findall(r"(?m)^([\w.-]+)==(\S+)", "".join(pinned))

    assert set() == set(by_pip) - set(by_uv)
