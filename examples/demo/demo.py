"""The demo: three agents on Ray lose their host and their runners, and carry on.

    make demo

It starts Ray on this machine, gives three sessions a folder of texts each,
shows what they do, SIGKILLs the session host in the middle of a turn and the
runner in the middle of an idempotent call and of an undeclared one, and checks
in the tools' own journal what really ran. Ctrl-C leaves nothing behind.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cueline.actors.presence import evidence_of_end
from cueline.agents.agent import Agent
from cueline.client.runtime import open_runtime
from cueline.client.session import Session
from cueline.deciders.session import SessionState, Status
from cueline.events.event_text import cause_text, doubt_text
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    ModelStarted,
    SessionCompleted,
    SessionEvent,
    SessionTakenOver,
    SessionWaiting,
    ToolAsked,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.runtime.open_log import OpenLog, open_log
from cueline.tools.shell import holding_problem

HERE = Path(__file__).parent
GOALS = {
    "report": "Write a report about the harbour and the lighthouse.",
    "index": "Build an index of all texts.",
    "notice": "Post a notice about when the market opens.",
}
COLOURS = {"report": "cyan", "index": "magenta", "notice": "yellow"}
TEXTS = {
    "harbour.txt": "Three ships lay in the harbour, and a fourth ship was due with the tide.",
    "lighthouse.txt": "The keeper of the lighthouse lit the lamp an hour before dusk.",
    "market.txt": "The market opens at eight, rain or shine, by order of the council.",
}

screen = Console(highlight=False)


@dataclass
class Story:
    """The observations of the demo about one session."""

    name: str
    state: SessionState | None = None
    tokens: int = 0
    usd: float = 0.0
    calls: int = 0
    recovered: list[str] = field(default_factory=list)


def say(name: str, text: str, style: str = "") -> None:
    """Print one line of a session."""
    at = datetime.now(UTC).astimezone().strftime("%H:%M:%S")
    screen.print(f"[dim]{at}[/] [{COLOURS[name]}]{name:>7}[/]  ", end="")
    screen.print(text, style=style, markup=False)


def show(story: Story, event: SessionEvent) -> None:
    """Print an event, and count it."""
    name = story.name
    match event:
        case ModelReplied(content=content, usage=usage, cost=cost, calls=calls):
            story.tokens += usage.input + usage.output
            story.usd += float(cost.usd) if cost else 0.0
            said = " ".join(block.text for block in content if block.kind == "text")
            say(name, f"“{said}”")
            say(name, f"   {usage.input + usage.output:,} tokens, ${story.usd:.2f}", "dim")
            for call in calls:
                told = ", ".join(
                    f"{key}={str(value)[:40]!r}" for key, value in call.arguments.items()
                )
                say(name, f"   asks for {call.name}({told})", "dim")
        case SessionTakenOver(epoch=epoch):
            say(name, f"taken over by a new host (epoch {epoch})", "bold green")
            story.recovered.append("its host")
        case ModelFailed(kind=kind):
            say(name, f"   a model call was lost ({kind}); it is made again", "red")
        case SessionWaiting(kind=kind, cause=cause):
            say(name, f"waits ({kind}): {cause_text(cause)}", "dim")
        case SessionCompleted():
            say(name, "completed", "bold")
        case _:
            show_call(story, event)


def show_call(story: Story, event: SessionEvent) -> None:
    """Print the outcome of a tool call, and count it."""
    name = story.name
    match event:
        case ToolStarted(tool=tool, attempt=attempt, rule=rule):
            story.calls += attempt == 1
            again = f", attempt {attempt}" if attempt > 1 else ""
            say(name, f"→ {tool} ({rule}{again})")
        case ToolAsked(requests=requests):
            say(name, "   nothing is changed yet; a yes would change:", "yellow")
            for line in requests[0].message.splitlines()[2:]:
                say(name, f"     {line}", "yellow")
        case ToolReturned(output=output):
            say(name, f"← {' '.join(output.split())[:70] or '(nothing)'}", "green")
        case ToolFailed(kind=kind, retry_at=retry_at):
            then = "it is run again under the same key" if retry_at else "the model is told"
            say(name, f"← {kind}: {then}", "red")
            if retry_at:
                story.recovered.append("an idempotent call, run again")
        case ToolInDoubt(cause=cause):
            say(name, f"← in doubt: {doubt_text(cause)}", "red")
        case ToolReconciled(by=by):
            say(name, f"   by {by}, the model is told that the outcome is unknown", "red")
            story.recovered.append("a call in doubt, told to the model")
        case ToolSkipped(reason=reason):
            say(name, f"← skipped: {reason}", "red")
        case _:
            pass


async def watch(session: Session, story: Story) -> None:
    """Follow one session to its end."""
    async for _, event, state in session.follow():
        story.state = state
        show(story, event)
        if state.finished:
            return


async def kill(log: OpenLog, role: str, why: str) -> None:
    """SIGKILL the process that plays *role*."""
    victims = [p for p in await log.board.all() if p.role == role and not evidence_of_end(p)]
    for victim in victims:
        screen.rule(f"[bold red]SIGKILL {role} (process {victim.pid})", style="red")
        screen.print(f"[red]{why}", justify="center")
        os.kill(victim.pid, signal.SIGKILL)


def journal(folder: Path) -> list[dict[str, object]]:
    """Read the journal that the tools write at each of their starts."""
    file = folder / "journal.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def until(condition: object, what: str) -> None:
    """Wait for a fact, at most 120 s."""
    assert callable(condition)
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited 120 s for {what}")
        await asyncio.sleep(0.02)


async def sabotage(log: OpenLog, folders: dict[str, Path], started: dict[str, set[str]]) -> None:
    """Kill the announced processes, each at its moment."""
    await until(lambda: "3.m" in started["report"], "the third turn of the report")
    await kill(log, "host", "in the middle of a turn of all three sessions")
    await until(lambda: journal(folders["index"]), "the start of build_index")
    await kill(log, "runner", "in the middle of build_index, which is idempotent")
    await until(lambda: journal(folders["notice"]), "the start of post_notice")
    await kill(log, "runner", "in the middle of post_notice, of which nothing is declared")


async def note_starts(session: Session, seen: set[str]) -> None:
    """Note which model calls have gone out."""
    async for _, event, _state in session.follow():
        if isinstance(event, ModelStarted):
            seen.add(event.effect)


def agent_for(name: str, workspace: Path) -> Agent:
    """Return the agent of one session."""
    agent = Agent.from_file(HERE / "agent.toml")
    files = {"model": str(HERE / f"{name}.toml"), "workspace": workspace}
    if holding_problem():
        files["tool_settings"] = {}
    return agent.model_copy(update=files)


def prepare(scratch: Path) -> dict[str, Path]:
    """Give each session a folder of its own."""
    folders = {}
    for name in GOALS:
        workspace = scratch / name / "workspace"
        workspace.mkdir(parents=True)
        for text, content in TEXTS.items():
            (workspace / text).write_text(content + "\n")
        folders[name] = scratch / name
    return folders


def summarise(stories: dict[str, Story]) -> None:
    """Print a line for each session."""
    table = Table("session", "status", "turns", "tool calls", "tokens", "cost", "recovered")
    for story in stories.values():
        assert story.state is not None
        table.add_row(
            story.name,
            story.state.status,
            str(story.state.turn.number),
            str(story.calls),
            f"{story.tokens:,}",
            f"${story.usd:.2f}",
            ", ".join(dict.fromkeys(story.recovered)) or "-",
        )
    screen.print(table)


def check(folders: dict[str, Path]) -> bool:
    """Compare the tools' journal with their declarations."""
    starts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for folder in folders.values():
        for line in journal(folder):
            start = f"attempt {line['attempt']} in process {line['pid']}"
            starts[str(line["tool"]), str(line["key"])].append(start)
    once = all(len(began) == 1 for (tool, _), began in starts.items() if tool == "post_notice")
    indexes = [began for (tool, _), began in starts.items() if tool == "build_index"]
    # On a busy machine the second kill may hit it again.
    one_key = len(indexes) == 1 and len(indexes[0]) > 1
    for (tool, key), began in sorted(starts.items()):
        screen.print(f"  {tool} {key}: {', '.join(began)}", soft_wrap=True)
    screen.print(f"  no undeclared effect ran twice: {'yes' if once else 'NO'}")
    screen.print(f"  the idempotent call ran again under one key: {'yes' if one_key else 'NO'}")
    return once and one_key


async def run(scratch: Path) -> bool:
    """Run the whole demo, and print whether all promises held."""
    folders = prepare(scratch)
    stories = {name: Story(name) for name in GOALS}
    path = scratch / "log.db"
    screen.print("Starting Ray on this machine. The demo approves every sensitive call by itself.")
    if problem := holding_problem():
        screen.print(f"What its commands change is not held here: {problem}.")
    async with (
        open_log(path) as log,
        open_runtime(path, on="ray", on_trouble=screen.print) as runtime,
    ):
        started: dict[str, set[str]] = {name: set() for name in GOALS}
        sessions = {}
        for name, goal in GOALS.items():
            agent = agent_for(name, folders[name] / "workspace")
            sessions[name] = await runtime.start(agent, goal, id=name)
        notes = [asyncio.create_task(note_starts(sessions[n], started[n])) for n in GOALS]
        try:
            watching = (watch(sessions[n], stories[n]) for n in GOALS)
            await asyncio.gather(sabotage(log, folders, started), *watching)
        finally:
            for note in notes:
                note.cancel()
    screen.rule("what became of them")
    summarise(stories)
    screen.print("What the tools themselves wrote down:")
    held = check(folders)
    ended = all(s.state and s.state.status is Status.COMPLETED for s in stories.values())
    screen.print("\nTry next:")
    for command in ("show notice", "replay index --check", "audit verify"):
        screen.print(f"  .venv/bin/cueline {command} --log {path}", soft_wrap=True)
    return held and ended


def main() -> int:
    """Run it; 0 when everything held."""
    scratch = Path(tempfile.mkdtemp(prefix="cueline-demo-"))
    try:
        return 0 if asyncio.run(run(scratch)) else 1
    except KeyboardInterrupt:
        shutil.rmtree(scratch, ignore_errors=True)
        screen.print("stopped; nothing is left behind")
        return 130


if __name__ == "__main__":
    sys.exit(main())
