"""A whole chain on a git repository: plan, implement, review, and correct what was found.

    python examples/chain/chain.py

It makes a repository with code that fails its tests, and runs the shipped chain
`full-pipeline` on it. The four agents are scripted, so it needs no key. The person who
has to allow the plan is this program.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from cueline import Agent, ApprovalRequested, Policy, open_runtime

HERE = Path(__file__).parent
GOAL = "Make count_words right: its tests fail."
CODE = '''"""Count words."""


def count_words(text):
    """Return the number of words in a text."""
    return len(text.split(" "))
'''
TESTS = """import unittest

from words import count_words


class CountsWords(unittest.TestCase):
    def test_words(self):
        self.assertEqual(3, count_words("to be\\nor"))

    def test_nothing(self):
        self.assertEqual(0, count_words(""))
"""


def run(folder: Path, *command: str) -> str:
    """Return the output of a command in *folder*."""
    done = subprocess.run(command, cwd=folder, text=True, check=False, capture_output=True)
    return (done.stdout + done.stderr).strip()


def make_repository(folder: Path) -> Path:
    """Create a repository with one commit, whose tests fail."""
    folder.mkdir()
    (folder / "words.py").write_text(CODE)
    (folder / "test_words.py").write_text(TESTS)
    run(folder, "git", "init", "-q")
    run(folder, "git", "config", "user.name", "example")
    run(folder, "git", "config", "user.email", "example@example.org")
    run(folder, "git", "add", "words.py", "test_words.py")
    run(folder, "git", "commit", "-qm", "Count words")
    return folder


def chain_in(folder: Path, repository: Path) -> Agent:
    """Return the shipped chain with this example's agents, which work on *repository*."""
    shutil.copytree(HERE, folder)
    with as_file(files("cueline") / "agents/chains/full-pipeline.toml") as shipped:
        shutil.copy(shipped, folder)
    chain = Agent.from_file(folder / "full-pipeline.toml")
    update = {"workspace": repository, "policy": Policy(approval=("off",))}
    return chain.model_copy(update=update)


async def run_chain(folder: Path) -> int:
    """Run the chain, and print its result; return the exit code."""
    repository = make_repository(folder / "repository")
    sys.stdout.write(f"before: {run(repository, 'python3', '-B', '-m', 'unittest')[-80:]}\n")
    chain = chain_in(folder / "agents", repository)
    async with open_runtime(folder / "log" / "log.db", on="inline") as runtime:
        session = await runtime.start(chain, parameters={"goal": GOAL})
        async for _, event in session.events():
            if isinstance(event, ApprovalRequested):
                sys.stdout.write("the plan is there; this program allows the next step\n")
                await session.approve(event.approval)
        result = await session.result()
    sys.stdout.write(f"{result.status}: {result.text}\n")
    sys.stdout.write(f"{run(repository, 'git', 'log', '--format=%s')}\n")
    sys.stdout.write(f"after: {run(repository, 'python3', '-B', '-m', 'unittest')[-80:]}\n")
    return 0 if result.status == "completed" else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(run_chain(Path(place))))
