"""Six sessions mend one repository beside each other, each on a branch of its own.

    python examples/sandboxes/branches.py

Each session works in a sandbox, a git worktree, of which three may be started at a time. It plans,
asks a person before it changes anything, implements, tests and commits, and has another agent
review the branch. While it waits for the person, it has no started sandbox. The agents are
scripted, so this needs no key, but git and bubblewrap.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cueline import (
    Agent,
    ApprovalRequested,
    Policy,
    Rule,
    Runtime,
    SandboxSpec,
    Session,
    ToolSettings,
    open_runtime,
)

SESSIONS = 6
STARTED = 3
TEST = """import unittest

from part_{number} import double


class Doubles(unittest.TestCase):
    def test_double(self):
        self.assertEqual({number} * 2, double({number}))
"""
BUILDS = """
[[reply]]
text = "Plan: see how the test fails, mend the function, test and commit it."
delay_seconds = {delay}
calls = [{{ name = "run_command", arguments = {{ command = "{tests}" }} }}]

[[reply]]
text = "I double the number."
delay_seconds = {delay}
calls = [{{ name = "write_file", arguments = {{ path = "part_{number}.py", content = '''
def double(number):
    return 2 * number
''' }} }}]

[[reply]]
text = "I test and commit it."
delay_seconds = {delay}
calls = [{{ name = "run_command", arguments = {{ command = "{tests} && {commit}" }} }}]

[[reply]]
text = "Another agent reviews it."
calls = [{{ name = "reviewer", arguments = {{ goal = "Review the branch of part {number}." }} }}]

[[reply]]
text = "Part {number} doubles, and is reviewed."
"""
REVIEWS = """
[[reply]]
delay_seconds = {delay}
calls = [{{ name = "run_command", arguments = {{ command = "{reads}" }} }}]

[[reply]]
text = "No problems found."
"""


def git(folder: Path, *words: str) -> str:
    """Return the output of git in *folder*."""
    command = ["git", "-c", "user.name=example", "-c", "user.email=example@example.org", *words]
    return subprocess.run(command, cwd=folder, text=True, check=True, capture_output=True).stdout


def make_repository(folder: Path) -> Path:
    """Create a repository with one commit, all of whose tests fail."""
    folder.mkdir()
    for number in range(1, SESSIONS + 1):
        (folder / f"part_{number}.py").write_text("def double(number):\n    return number\n")
        (folder / f"test_part_{number}.py").write_text(TEST.format(number=number))
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def agent_for(number: int, repository: Path, delay: float = 0) -> Agent:
    """Return the agent that mends part *number*; its model answers after *delay* seconds."""
    words = {
        "number": number,
        "delay": delay,
        "tests": f"python3 -B -m unittest -q test_part_{number}",
        "reads": f"git log --all --oneline -- part_{number}.py",
        "commit": "git -c user.name=agent -c user.email=agent@example.org commit -qam Double",
    }
    reviewer = Agent(
        name="reviewer",
        provider="scripted",
        model="reviewer",
        parameters={"script": REVIEWS.format(**words)},
        tools=["run_command"],
        workspace=repository,
        sandbox=SandboxSpec(backend="worktree"),
        policy=Policy(approval=("off",)),
    )
    asks = Rule(name="changes", answer="ask", tools=("write_file",))
    return Agent(
        name="builder",
        provider="scripted",
        model="builder",
        parameters={"script": BUILDS.format(**words)},
        tools=["run_command", "write_file", reviewer],
        tool_settings={"reviewer": ToolSettings(timeout_seconds=7200)},  # it may wait for a sandbox
        workspace=repository,
        sandbox=SandboxSpec(backend="worktree"),
        policy=Policy(approval=("off",), rules=(asks,)),
    )


async def start_all(runtime: Runtime, agents: Sequence[Agent]) -> list[Session]:
    """Start a session of each of *agents*."""
    return [
        await runtime.start(agent, f"Mend part {number}.", id=f"part-{number}")
        for number, agent in enumerate(agents, 1)
    ]


async def question_of(session: Session) -> str:
    """Return the id of the question that the session asks before its first change."""
    async for _, event in session.events():
        if isinstance(event, ApprovalRequested):
            return event.approval
    result = await session.result()
    raise RuntimeError(f"{result.status} without a question: {result.text}")


async def main(folder: Path) -> int:
    """Run the sessions; return the exit code."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    repository = make_repository(folder / "repository")
    async with open_runtime(folder / "log.db", on="inline", sandboxes=STARTED) as runtime:
        agents = [agent_for(number, repository) for number in range(1, SESSIONS + 1)]
        sessions = await start_all(runtime, agents)
        questions = await asyncio.gather(*map(question_of, sessions))
        sys.stdout.write(f"{len(questions)} sessions wait for a person\n")
        for session, question in zip(sessions, questions, strict=True):
            await session.approve(question)
        results = [await session.result() for session in sessions]
    for result in results:
        sys.stdout.write(f"{result.status}: {result.text}\n")
    sys.stdout.write(git(repository, "branch", "--list", "cueline/*"))
    return 0 if all(result.status == "completed" for result in results) else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(main(Path(place))))
