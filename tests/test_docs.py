"""The pages: what they show runs, what they name is there, and what is there they name."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from cueline.agents.agent import Agent
from cueline.cli import app
from cueline.testing.wait import PATIENCE_SECONDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("guides/*.md"))
REFERENCE = sorted(DOCS.glob("reference/*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
ADRS = sorted(DOCS.glob("adr/*.md"))
TYPED = [DOCS / "tutorial.md", DOCS / "guides/sql.md"]
"""The pages whose commands are run, one after the other in one shell."""

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIES = (
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d([+-]\d\d:\d\d)?)?", "DATE"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"(\b\d+(\.\d+)? ?(ms|s|m|h|d)\b ?)+", "DURATION "),
    (r"[\d,]+ in \+ [\d,]+ out", "TOKENS"),
    (r"process \d+ on [\w.-]+", "PROCESS"),
    (r".*line \d+: +\d+ Killed.*\n", ""),
    (r"[ \t]+", " "),
    (r"(?m) +$", ""),
)
"""What differs from one run to the next, and what stands for it in a comparison."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
each_adr = pytest.mark.parametrize("adr", ADRS, ids=lambda adr: adr.stem)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name in its first line, when the block is a file."""
        found = re.match(r"# (\S+\.(py|toml))\n", self.text)
        return found and found[1]

    @property
    def typed(self) -> str:
        """What is typed at the prompts of a console block."""
        lines = [line for line in self.text.splitlines() if line.startswith(("$ ", "> "))]
        return "".join(f"{line[2:]}\n" for line in lines)

    @property
    def printed(self) -> str:
        lines = self.text.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(("$ ", "> ")))


def blocks(language: str, *pages: Path) -> list[Block]:
    found = []
    for page in pages:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(page, line, match[1], match[2]))
    return [block for block in found if block.language == language]


def named(block: Block) -> str:
    return f"{block.page.stem}:{block.line}"


def fits(printed: str, shown: str) -> bool:
    """Whether what was *printed* is what is *shown*, where `...` stands for anything."""
    parts = (re.escape(part) for part in masked(shown).split("..."))
    return re.fullmatch(".*?".join(parts), masked(printed), re.DOTALL) is not None


def masked(text: str) -> str:
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text.strip()


# What the pages show runs.

CONSOLE = blocks("console", *TYPED)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, str]:
    """Type all commands into one shell; return what each block printed."""
    home = tmp_path_factory.mktemp("home")
    (home / "examples").symlink_to(ROOT / "examples")
    (home / ".venv").symlink_to(sys.prefix)
    script = "".join(f"echo '@@@ {named(block)}'\n{block.typed}" for block in CONSOLE)
    (home / "typed.sh").write_text(script)
    environ = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        ["bash", "typed.sh"],
        check=False,
        cwd=home,
        env={**environ, "HOME": str(home), "LOGNAME": "ada", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=5 * PATIENCE_SECONDS,
    )
    _, *parts = re.split(r"^@@@ (\S+)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("block", CONSOLE, ids=named)
def test_commands_print_what_their_page_shows(block, printed):
    assert fits(printed[named(block)], block.printed), masked(printed[named(block)])


@pytest.mark.parametrize("block", blocks("python", *PAGES), ids=named)
def test_python_runs(block, tmp_path):
    script = tmp_path / (block.file or "block.py")
    script.write_text(block.text)
    runner = ["-m", "pytest", "-q"] if script.name.startswith("test_") else []

    done = subprocess.run(
        [sys.executable, *runner, script],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert 0 == done.returncode, done.stdout + done.stderr


CRASHES = DOCS / "guides/crash-tests.md"
FAILING = [each for each in blocks("python", CRASHES) if not each.file.startswith("test_")]


@pytest.mark.parametrize(
    ("script", "shown"),
    [*zip(FAILING, blocks("text", CRASHES), strict=False)],
    ids=["lost", "twice"],
)
def test_a_crash_test_fails_as_its_page_shows(script, shown, tmp_path):
    (tmp_path / "script.py").write_text(script.text)

    done = subprocess.run(
        [sys.executable, "script.py"],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert fits(done.stdout, shown.text), done.stdout


@pytest.mark.parametrize("name", ["agent.toml", "script.toml", "post.py"])
def test_the_tutorial_shows_the_files_of_its_folder(name):
    shown = {block.file: block.text for language in ("python", "toml") for block in files(language)}

    assert (ROOT / "examples/tutorial" / name).read_text() == shown[name].partition("\n")[2]


def files(language: str) -> list[Block]:
    return blocks(language, DOCS / "tutorial.md")


def test_the_agent_file_of_the_reference_is_one(tmp_path):
    (block,) = blocks("toml", DOCS / "reference/agent-file.md")
    (tmp_path / "agent.toml").write_text(block.text)

    agent = Agent.from_file(tmp_path / "agent.toml")

    assert "run_command" in {tool.name for tool in agent.spec().tools}


# What the pages name is there.


def invocations() -> Iterator[tuple[str, list[str]]]:
    """Tell each `cueline …` of the pages, in words."""
    for block in blocks("console", *PAGES):
        for part in re.split(r"[;|&]+|<|2?>(?!=)|\s#", block.typed.replace("\n", ";")):
            words = shlex.split(part) if part.count('"') % 2 == 0 else part.split()
            if words[:1] == ["cueline"]:
                yield named(block), words[1:]


def parsed(command: TyperCommand | TyperGroup, words: list[str]) -> TyperCommand | TyperGroup:
    """Return the subcommand that *words* call, having checked every option."""
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
        command = getattr(command, "loaded", command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= known | {"--help"}
    return command


@pytest.mark.parametrize(("where", "words"), list(invocations()), ids=str)
def test_a_command_in_a_page_is_one(where, words):
    root = typer.main.get_command(app)

    assert parsed(root, words) is not root or words[0].startswith("-")


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"(?m)^#+ (.+)$", page.read_text())}


@each_page
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text())
    for link in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# What is there the pages name.


@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE], ids=lambda page: page.stem)
def test_the_index_has_each_page(page):
    assert f"({page.relative_to(DOCS)})" in (DOCS / "index.md").read_text()


def test_the_navigation_has_each_page():
    named = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())

    pages = {*GUIDES, *REFERENCE, *DOCS.glob("*.md")}
    assert sorted(str(page.relative_to(DOCS)) for page in pages) == sorted(named)


def test_a_site_is_made_of_the_pages(tmp_path):
    (target,) = re.findall(r"(?m)^docs:.*\n\t(.+)$", (ROOT / "Makefile").read_text())
    command = target.replace("$(BIN)", str(Path(sys.executable).parent))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")

    done = subprocess.run(
        shlex.split(command),
        check=False,
        cwd=tmp_path,
        env=os.environ | {"UV_PROJECT": str(ROOT)},
        capture_output=True,
        text=True,
    )

    if "error sending request" in done.stderr:
        pytest.skip("no package index is reachable")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert (tmp_path / "site/guides/approvals/index.html").exists()
    assert "approve" in (tmp_path / "site/search.json").read_text()


# How the pages are written.


@each_page
def test_a_page_keeps_to_the_words(page):
    text = page.read_text().replace('"exactly once"', "")

    assert [] == re.findall(r"(?i)exactly once|\bsimply\b|\bjust\b|\brobust|\bcomprehensive", text)


# C50
def test_a_word_has_one_meaning():
    told = re.findall(r"(?m)^\| \*\*(.+)\*\* \|", (DOCS / "concepts.md").read_text())
    words = [word for each in told for word in each.split(", ")]

    assert {"chain", "workflow", "approval", "checkpoint", "state snapshot"} < set(words)
    assert len(words) == len(set(words))


@each_page
def test_a_chain_has_no_other_name(page):
    assert [] == re.findall(r"(?i)(?<!full-)\bpipelines?\b", page.read_text())


@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE], ids=lambda page: page.stem)
def test_the_title_of_a_page_is_the_question_it_answers(page):
    assert re.match(r"# .+\?\n", page.read_text())


# 000-013, 002-001; 002-038: what was rejected, with the reasons, is its last part.
@each_adr
def test_a_decision_is_short_and_has_its_four_parts(adr):
    text = adr.read_text()

    assert text.count("\n") <= 60
    assert re.match(rf"# {adr.stem[:4]} \S", text)
    headings = ["Context", "Decision", "Consequences", "Alternatives we liked"]
    assert headings == re.findall(r"(?m)^## (.+)$", text)
