"""Kills your agent at every point that there is, and says what is lost or done twice.

It runs the agent's own tools with a scripted model: once without a fault, and then once for
each point before and after an append, a tool's effect and a reply of the model. There it kills
the host, with or without its runner, and lets another process continue the session.
"""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from cueline.actors.runner import Runner
from cueline.actors.tool_port import ReconcileFinding, ToolOrder
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.errors import ConfigError
from cueline.events.agent import CUSTOM_SCHEMES, AgentSpec, Declared, ToolSpec
from cueline.events.budget import BudgetEvent
from cueline.events.inbox import DecisionGiven, Resolution
from cueline.events.session import SessionCompleted, SessionFailed, SessionStopped, ToolStarted
from cueline.events.stream import sibling
from cueline.providers.account import NOWHERE
from cueline.providers.prices import ANY, bound, cost_of
from cueline.providers.scripted.provider import PROVIDER
from cueline.stores import MemoryStore
from cueline.testing.clock import FakeClock
from cueline.testing.crash import Outside, World
from cueline.testing.crash_findings import Course, Problem, problems, report
from cueline.testing.crash_point import CrashingRunner, CrashPoint
from cueline.testing.fakes import JournalingExecutor
from cueline.tools.arguments import check_arguments, check_call
from cueline.tools.custom import shipped_order
from cueline.tools.executor import refuse, request_for
from cueline.tools.progress import drop_progress
from cueline.tools.recorded_tool import estimate, load_recorded
from cueline.tools.result import failure_of, finding_of
from cueline.tools.tool import Output
from cueline.tools.worker import answer, await_if_needed, reconcile

SAMPLE: Final = 6
_A_DAY: Final = 86_400.0
_OF_THE_MODEL: Final = ("base_url", "key_variable", "on_unknown_price")
_OF_TIME: Final = {"breaker", "retry", "time"}
_ENDS: Final = SessionCompleted | SessionFailed | SessionStopped


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCase:
    """What runs, how a test sees the outside world, and the problems that were found."""

    spec: AgentSpec
    goal: str
    reset: Callable[[], object]
    effects: Callable[[], object]
    allowed: Collection[str]
    """The tools that may be in doubt."""
    kills: list[str] = field(default_factory=list)
    found: dict[Problem, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def declared(self) -> dict[str, Declared]:
        """What the tools declare, by name."""
        return {tool.name: tool.declared for tool in self.spec.tools}

    async def check(self, run: Awaitable[tuple[Course, str]], whole: Course, where: str) -> None:
        """Add what is wrong after the kill in *run*, which died at *where*."""
        try:
            now, last = await run
            self.kills.append(f"{where}; {last}")
            for problem in problems(now, whole, self.declared, self.allowed):
                self.found[problem].append(self.kills[-1])
        except Exception as error:
            error.add_note(f"killed {where}")
            raise

    async def course(
        self, place: Outside, stream: str, starts: Counter[str], early: Sequence[str] = ()
    ) -> Course:
        """Return what became of the session *stream*."""
        facts = await place.facts(stream)
        budget = cast("list[BudgetEvent]", await place.facts(sibling(stream, "budget")))
        return Course(stream, facts, budget, self.effects(), starts, early)


def crash_everywhere(
    agent: Agent,
    goal: str,
    script: str,
    *,
    effects: Callable[[], object] = nothing,
    reset: Callable[[], object] = nothing,
    may_be_in_doubt: Collection[str] = (),
    processes: bool = False,
    sample: int = SAMPLE,
    folder: Path | None = None,
) -> list[str]:
    """Kill *agent* at every point of its work on *goal*, and check what becomes of it.

    Approvals are granted. Calls in doubt of the tools in *may_be_in_doubt* are answered by a
    person who knows what happened. Time does not pass: the kit moves the clock.

    Args:
        agent: the agent, with its real tools; they run in this process.
        goal: the session's goal.
        script: the replies of the model, as the TOML text of a scripted provider.
        effects: returns what the tools have done outside, to be compared with `==`.
        reset: removes these effects; called before each run.
        may_be_in_doubt: the names of tools whose outcome a person may be asked for.
        processes: run `cueline resume` as a process, which SIGKILL ends, with workers and a log
            in a file. Each kill takes seconds; *effects* is called often meanwhile.
        sample: the number of kills of processes.
        folder: keeps the logs of processes; by default they are removed.

    Returns:
        The kills, as texts.

    Raises:
        AssertionError: the message says where it was killed, what was lost or ran twice, and
            what to do.
        ConfigError: the agent cannot be recorded, or needs *processes*.
    """
    __tracebackhide__ = True
    spec = agent_to_record(with_script(agent, script))
    case = CrashCase(spec=spec, goal=goal, reset=reset, effects=effects, allowed=may_be_in_doubt)
    if processes:
        from cueline.testing.crash_processes import kill_processes  # noqa: PLC0415 - it imports us

        with TemporaryDirectory() as own:
            asyncio.run(kill_processes(case, folder or Path(own), sample))
    else:
        for tool in spec.tools:
            if spec.sandbox or tool.server or tool.changes or not tool.runs:
                raise ConfigError(tool.name, "its calls run only with processes=True")
        asyncio.run(_kill_inline(case))
    assert not case.found, report(case.found, len(case.kills))
    return case.kills


def with_script(agent: Agent, script: str) -> Agent:
    """Return *agent* with a scripted model instead of its own, at the price in its own list."""
    price = agent.prices.get(f"{agent.provider}/{agent.model}") or agent.prices.get(ANY)
    prices = {f"{PROVIDER.name}/script": price} if price else {}
    fields = {"provider": PROVIDER.name, "model": "script", "parameters": {"script": script}}
    own = dict.fromkeys(_OF_THE_MODEL, None) | {"fallback": (), "headers": {}, "prices": prices}
    return agent.model_copy(update=own | fields)


async def _kill_inline(case: CrashCase) -> None:
    for died in ("host and runner", "host"):
        alone, life = died == "host", CrashPoint()
        whole, _ = await run_inline(case, life, host_alone=alone)
        check_whole(whole)
        for number, point in enumerate(life.points):
            run = run_inline(case, CrashPoint(number), CrashPoint(), host_alone=alone)
            await case.check(run, whole, f"{point} ({died})")


def check_whole(whole: Course) -> None:
    """Check the session that was not killed.

    Raises:
        AssertionError: it does not end.
    """
    assert isinstance(whole.facts[-1], _ENDS), f"without a kill it does not end: {whole.end}"


async def run_inline(case: CrashCase, *lives: CrashPoint, host_alone: bool) -> tuple[Course, str]:
    """Let one process after the other drive the session.

    Return what became of it, and the last event of the first process.
    """
    case.reset()
    early: list[str] = []

    async def call(order: ToolOrder) -> Any:
        facts = await place.facts(order.session)
        started = {(f.effect, f.attempt) for f in facts if isinstance(f, ToolStarted)}
        early.extend([order.key] if (order.effect, order.attempt) not in started else [])
        return output_here(order)

    def happened(key: str) -> Resolution:
        # A call that began has ended: the loop does nothing else meanwhile.
        return "happened" if any(each.key == key for each in executor.starts) else "run_again"

    tools = {tool.name: partial(finding_here, tool) for tool in case.spec.tools}
    executor = JournalingExecutor(dict.fromkeys(tools, call), reconciling=tools)
    place = outside(executor)
    runner = Runner("runner-1", executor, lambda: place.clock.now().timestamp())
    place.runners.ports |= {"runner-1": runner} if host_alone else {}
    stream, last = await place.start("crash", case.spec, case.goal), ""
    for life in lives:
        world = World(place, life, runner=CrashingRunner(runner, life) if host_alone else None)
        world.host.activate(stream)
        await world.rest(within=_A_DAY)
        while not life.dead and (
            await decide_all(place, stream, happened) or await pass_time(place, stream)
        ):
            await world.rest(within=_A_DAY)
        await world.kill()
        assert not world.troubles, world.troubles
        last = last or await last_event(place, stream)
    starts = Counter(start.key.rpartition("/")[2] for start in executor.starts)
    return await case.course(place, stream, starts, early), last


def outside(executor: JournalingExecutor) -> Outside:
    """Return a fresh outside with a scripted model, and the real checks and prices."""
    clock = FakeClock()
    model = PROVIDER.make(NOWHERE, clock.sleep)
    place = Outside(clock, MemoryStore(clock), model, executor, price=cost_of, bound=bound)
    return replace(place, check_call=check_call, estimate=estimate)


def output_here(order: ToolOrder) -> Output:
    """Call the function of a tool in this process, as a worker does."""
    if order.tool.target.startswith(CUSTOM_SCHEMES):
        order = shipped_order(order)
    check_arguments(order.tool, order.arguments)
    request = request_for(order, "run", ())
    head, body = run_here(lambda: answer(request, os.getpid(), drop_progress))
    refuse(head)
    return Output(body[: head["size"]], head["truncated_from"], head["media_type"])


def finding_here(tool: ToolSpec, key: str) -> ReconcileFinding:
    """Ask the tool for the outcome of the call with *key*, in this process."""
    try:
        return finding_of(run_here(lambda: await_if_needed(reconcile(load_recorded(tool), key))))
    except Exception as error:  # noqa: BLE001 - tools are foreign code
        raise failure_of(error) from None


def run_here(run: Callable[[], Any]) -> Any:
    """Run a tool by *run*, and wait for it; the thread has no loop, as a worker has none."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


async def decide_all(place: Outside, stream: str, happened: Callable[[str], Resolution]) -> bool:
    """Decide all that a person is asked for; return False if there is nothing.

    *happened* returns the resolution of a call in doubt, by its key.
    """
    calls = (await place.state(stream)).open_calls
    asked = {call.effect: call.approval for call in calls if call.asking and not call.unanswered}
    for effect, approval in asked.items():
        assert approval is not None, "a call that asks has an approval"
        in_doubt = approval.question == "did_it_happen"
        said = happened(f"{stream}/{effect}") if in_doubt else None
        decision = DecisionGiven(
            approval=approval.id,
            digest=approval.digest,
            verdict="deny" if said == "do_not_run" else "grant",
            resolution=said,
            by="crash kit",
        )
        await place.say(stream, decision)
    return bool(asked)


async def pass_time(place: Outside, stream: str) -> bool:
    """Move the clock to the end of the session's wait; return False if it waits for no time."""
    wait = (await place.state(stream)).waiting
    if wait is None or wait.deadline_at is None or wait.kind not in _OF_TIME:
        return False
    await place.clock.advance((wait.deadline_at - place.clock.now()).total_seconds())
    return True


async def last_event(place: Outside, stream: str) -> str:
    """Name the last event of the session."""
    types = await place.types(stream)
    return f"last event {types[-1]}, version {len(types)}" if types else "no event yet"
