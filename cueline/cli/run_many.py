"""`cueline run --many`: run a session for each line of a file, some at a time."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from cueline.agents.preflight import check_answerable, check_log_is_out_of_reach
from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.run_options import RunOptions
from cueline.cli.start_options import AgentOptions, prepare, warn_of_retirements
from cueline.cli.terminal import Interrupts, print_json
from cueline.client.client import open_client
from cueline.client.inputs import checked_parameters
from cueline.client.many import ManyRun, Outcome
from cueline.client.start import StartOptions, StartRequest, id_of_key
from cueline.config.problem import problems_of
from cueline.console.table import print_table
from cueline.console.text import duration, json_of, money, one_line, visible
from cueline.errors import ConfigError, CuelineError
from cueline.files import read_text_file

_DONE = ("completed", "idle")
_WAITS = ("waiting", "running")


class Task(BaseModel):
    """A line of the file: a goal, or an object with these keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    goal: str | None = Field(default=None, min_length=1)
    parameters: dict[str, JsonValue] = {}
    key: str | None = None
    """The key of the task; by default the file, the line's number and its text."""
    labels: dict[str, str] = {}

    @property
    def texts(self) -> dict[str, str]:
        """The parameters in the form of `-p`."""
        return {name: json.dumps(value) for name, value in self.parameters.items()}


@dataclass(frozen=True, slots=True)
class Many:
    """The tasks of a file, and the number that run at a time."""

    file: Path
    concurrency: int
    key: str | None
    """The part of the keys that replaces the file's path."""
    tasks: Mapping[int, Task]
    """The tasks by the numbers of their lines."""

    @staticmethod
    def read(file: Path, concurrency: int, key: str | None) -> "Many":
        """Read the tasks.

        Raises:
            ConfigError: the file cannot be read or is empty, or a line is wrong.
        """
        try:
            lines = read_text_file(file).split("\n")  # and no other end of a line
        except (OSError, ValueError) as error:
            raise ConfigError(str(file), f"it cannot be read: {error}") from error
        tasks = {
            number: _task(f"{file}:{number}", line)
            for number, line in enumerate(lines, 1)
            if line.strip()
        }
        if not tasks:
            raise ConfigError(str(file), "it has no tasks: write a JSON object on each line")
        return Many(file, concurrency, key, tasks)

    @property
    def first(self) -> Task:
        """The first task."""
        return next(iter(self.tasks.values()))

    def requests(self, of_each: StartRequest) -> list[StartRequest]:
        """Return the start of each task, with the common options.

        Raises:
            ConfigError: two lines have the same key.
            ParameterValidationError: the parameters of a line do not fit the agent's schema.
        """
        requests: dict[str, StartRequest] = {}
        asked, whose = of_each.asked, self.key or str(self.file.resolve())
        for number, task in self.tasks.items():
            what = [whose, asked.agent.name, number, task.goal, task.parameters]
            key = task.key or json.dumps(what, sort_keys=True)
            if key in requests:
                raise ConfigError(f"{self.file}:{number}", f"another line has the key {key!r}")
            told = {
                "goal": task.goal,
                "parameters": checked_parameters(asked.agent, task.parameters),
                "labels": {**asked.labels, **task.labels},
            }
            requests[key] = replace(
                of_each, id=id_of_key(key), key=key, asked=asked.model_copy(update=told)
            )
        return list(requests.values())


def _task(where: str, line: str) -> Task:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ConfigError(where, f"it is not JSON: {error}") from error
    try:
        return Task.model_validate({"goal": given} if isinstance(given, str) else given)
    except ValidationError as error:
        wrong = problems_of(error, Task)[0]
        raise ConfigError(where, f"key {wrong.key!r}: {wrong.reason}") from error


def run_many(
    file: Path, who: AgentOptions, start: StartOptions, options: RunOptions, *, concurrency: int
) -> Exit:
    """Run a session for each task of *file*, and return the exit code.

    Raises:
        BadParameter: an option is not for many sessions.
        ConfigError: the file or a line is wrong, or the agent may ask and nobody could answer.
        ClusterError: there is no Ray for the sessions; nothing was recorded.
    """
    for option, given in {
        "GOAL": start.goal,
        "--id": start.id,
        "--parameter": start.texts,
        "--at": start.at,
        "--every": start.every,
        "--detach": options.detach,
        "--json-stream": options.json_stream,
    }.items():
        if given:
            raise typer.BadParameter(f"--many and {option} exclude each other")
    many = Many.read(file, concurrency, start.key)
    options = replace(options, attended=False)
    first = replace(start, key=None, goal=many.first.goal, texts=many.first.texts)
    of_each = prepare(who, first, options)
    warn_of_retirements(of_each, options)
    return open_log.run(_run_all(many, of_each, options))


async def _run_all(many: Many, of_each: StartRequest, options: RunOptions) -> Exit:
    """Run a session for each task, and show the progress and the outcomes."""
    requests = many.requests(of_each)
    check_answerable(of_each.asked.agent, options.log, attended=False)
    check_log_is_out_of_reach(of_each.asked.agent, options.log)
    loop = asyncio.get_running_loop()
    async with open_client(options.log, must_exist=False) as client:
        log = client.log.with_settings(options.context.settings)

        def say(stream: str, error: CuelineError) -> None:
            typer.echo(visible(f"{stream}: {error}"), err=True)

        async with options.runtime(log, say) as runtime:
            run = ManyRun(runtime, requests, many.concurrency)
            began = log.clock.now()

            async def leave() -> None:
                typer.echo("pausing once their calls have ended; Ctrl-C again leaves", err=True)
                await run.leave()

            signals = Interrupts(
                lambda: asyncio.run_coroutine_threadsafe(leave(), loop),
                lambda: _GOES_ON,
                goes_on=options.place == "up",
            )
            with _shown(run, quiet=options.as_json), signals:
                await run.run()
            seconds = (log.clock.now() - began).total_seconds()
    return _report(run, seconds, as_json=options.as_json)


_GOES_ON = "left at once; what was recorded stays, and the same command goes on"


@contextmanager
def _shown(run: ManyRun, *, quiet: bool) -> Iterator[None]:
    """Show the progress of *run*: a bar at a terminal, elsewhere a line for each end."""
    if quiet:
        yield
        return
    if not sys.stderr.isatty():
        run.changed = lambda: _print_last(run)
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    texts = (MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
    shown = Progress(BarColumn(), *texts, console=Console(stderr=True), transient=True)
    bar = shown.add_task("", total=len(run.requests), now="")

    def changed() -> None:
        now = f"{len(run.running)} running · {_sums(run.outcomes)}"
        shown.update(bar, completed=len(run.outcomes), now="pausing · " * run.left + now)

    run.changed = changed
    with shown:
        yield


def _print_last(run: ManyRun) -> None:
    """Print the new outcomes."""
    if run.outcomes and (last := run.outcomes[-1]).session not in run.running:
        done = f"{len(run.outcomes)}/{len(run.requests)}"
        typer.echo(visible(f"{done} {last.session} {last.result.status}"), err=True)


def _sums(outcomes: list[Outcome]) -> str:
    """Return the number of tasks with each outcome, and the cost."""
    counted = Counter(each.result.status for each in outcomes)
    pieces = [f"{count} {status}" for status, count in sorted(counted.items())]
    return " · ".join([*pieces, money(sum((each.result.cost for each in outcomes), Decimal(0)))])


def _report(run: ManyRun, seconds: float, *, as_json: bool) -> Exit:
    """Print the outcomes of the tasks, and return the exit code."""
    outcomes = sorted(run.outcomes, key=lambda each: each.number)
    wrong = [each for each in outcomes if each.result.status not in _DONE]
    if as_json:
        print_json(json_of({"tasks": [_document(run, each) for each in outcomes]}))
    else:
        if wrong:
            rows = [_row(run, each) for each in wrong]
            print_table(("session", "status", "goal", "why"), rows)
        known = sum(each.known for each in outcomes)
        before = f" · {known} started before" if known else ""
        missing = len(run.requests) - len(outcomes)
        rest = f" · {missing} not started" if missing else ""
        told = f"{len(run.requests)} tasks: {_sums(outcomes)} · {duration(seconds)}{before}{rest}"
        typer.echo(told)
        if run.left:
            typer.echo("the same command goes on", err=True)
    if run.left or any(each.result.status in _WAITS for each in wrong):
        failed = any(each.result.status not in _WAITS for each in wrong)
        return Exit.FAILED if failed else Exit.WAITING
    return Exit.FAILED if wrong else Exit.DONE


def _row(run: ManyRun, each: Outcome) -> tuple[str, ...]:
    asked = run.requests[each.number].asked
    goal = asked.goal or json_of(asked.parameters)
    return (each.session, each.result.status, one_line(goal, 40), one_line(each.result.text, 200))


def _document(run: ManyRun, each: Outcome) -> dict[str, Any]:
    result = each.result
    return {
        "goal": run.requests[each.number].asked.goal,
        "parameters": run.requests[each.number].asked.parameters,
        "id": each.session,
        "status": result.status,
        "result": result.text,
        "value": result.value,
        "partial": result.partial,
        "started_before": each.known,
        "turns": result.turns,
        "tokens": result.tokens,
        "cost": str(result.cost),
    }
