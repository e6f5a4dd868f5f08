"""Kills your agent at every point that there is, and says what is lost or done twice.

It runs the agent's own tools with a scripted model: once without a fault, and then once for
each point before and after an append, a tool's effect and a reply of the model. There it kills
the host, with or without its runner, and lets another process continue the session.
"""

import asyncio
import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from cueline.actors.runner import Runner
from cueline.actors.tool_port import ReconcileFinding, ToolOrder
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.errors import ConfigError
from cueline.events.agent import CUSTOM_SCHEMES, AgentSpec, Declared, ToolSpec
from cueline.events.inbox import DecisionGiven
from cueline.events.session import ToolStarted
from cueline.events.stream import sibling
from cueline.providers.account import NOWHERE
from cueline.providers.prices import ANY, bound, cost_of
from cueline.providers.scripted.provider import PROVIDER
from cueline.testing.crash import Outside, World
from cueline.testing.crash_findings import Course, Findings, problems
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


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCase:
    """What runs, and how a test sees the outside world."""

    spec: AgentSpec
    goal: str
    reset: Callable[[], object]
    effects: Callable[[], object]
    allowed: Collection[str]
    """The tools that may be in doubt."""
    findings: Findings = field(default_factory=Findings)

    @property
    def declared(self) -> dict[str, Declared]:
        """What the tools declare, by name."""
        return {tool.name: tool.declared for tool in self.spec.tools}

    def judge(self, kill: str, now: Course, whole: Course) -> None:
        """Add what is wrong with *now*, after the *kill*."""
        self.findings.add(kill, problems(now, whole, self.declared, self.allowed))

    def check_whole(self, whole: Course) -> None:
        """Check the session that was not killed.

        Raises:
            AssertionError: it does not end.
        """
        assert whole.ended, f"without a kill the session does not end: {whole.end}"


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
    case.findings.check()
    return case.findings.kills


def with_script(agent: Agent, script: str) -> Agent:
    """Return *agent* with a scripted model instead of its own, at the price in its own list."""
    price = agent.prices.get(f"{agent.provider}/{agent.model}") or agent.prices.get(ANY)
    fields = {
        "provider": PROVIDER.name,
        "model": "script",
        "prices": {f"{PROVIDER.name}/script": price} if price else {},
        "on_unknown_price": None,
        "parameters": {"script": script},
        "fallback": (),
        "base_url": None,
        "key_variable": None,
        "headers": {},
    }
    return agent.model_copy(update=fields)


async def _kill_inline(case: CrashCase) -> None:
    for died in ("host and runner", "host"):
        life = CrashPoint()
        whole = await InlineRun(case, host_alone=died == "host").drive(life)
        case.check_whole(whole)
        for number, point in enumerate(life.points):
            run = InlineRun(case, host_alone=died == "host")
            now = await run.drive(CrashPoint(number), CrashPoint())
            case.judge(f"{point} ({died}; {run.last})", now, whole)


class InlineRun:
    """One run of the agent in this process, through the lives of several processes."""

    def __init__(self, case: CrashCase, *, host_alone: bool) -> None:
        self._case = case
        self._early: list[str] = []
        self.last = ""
        """The last event before the kill."""
        names = [tool.name for tool in case.spec.tools]
        executor = JournalingExecutor(dict.fromkeys(names, self._call))
        executor.reconciling = {
            tool.name: lambda key, tool=tool: reconciled(tool, key)  # type: ignore[misc]  # it is bound here
            for tool in case.spec.tools
        }
        self.place = place = Outside.new(PROVIDER.make(NOWHERE, self._pause), executor)
        place.check_call, place.estimate, place.price, place.bound = (
            *(check_call, estimate, cost_of, bound),
        )
        self._runner: Runner | None = None
        if host_alone:
            now = place.clock.now
            self._runner = Runner("runner-1", executor, lambda: now().timestamp())
            place.runners.ports["runner-1"] = self._runner

    async def drive(self, *lives: CrashPoint) -> Course:
        """Let one process after the other drive the session, and return what became of it."""
        self._case.reset()
        place = self.place
        stream = await place.start("crash", self._case.spec, self._case.goal)
        for life in lives:
            runner = self._runner and CrashingRunner(self._runner, life)
            world = World(place, life, runner=runner)
            world.host.activate(stream)
            await world.rest(within=_A_DAY)
            while not life.dead and await decide_all(place, stream, self._happened):
                await world.rest(within=_A_DAY)
            await world.kill()
            assert not world.troubles, world.troubles
            self.last = self.last or await last_event(place, stream)
        starts = Counter(start.key.rpartition("/")[2] for start in place.executor.starts)
        return await course_of(place, stream, self._case, starts, self._early)

    async def _pause(self, seconds: float) -> None:
        await self.place.clock.sleep(seconds)

    def _happened(self, key: str) -> str:
        # A call that began has ended: the loop does nothing else meanwhile.
        began = any(start.key == key for start in self.place.executor.starts)
        return "happened" if began else "run_again"

    async def _call(self, order: ToolOrder) -> Any:
        """Call the function of a tool in this process, as a worker does."""
        facts = await self.place.facts(order.session)
        started = {(f.effect, f.attempt) for f in facts if isinstance(f, ToolStarted)}
        if (order.effect, order.attempt) not in started:
            self._early.append(order.key)
        if order.tool.target.startswith(CUSTOM_SCHEMES):
            order = shipped_order(order)
        check_arguments(order.tool, order.arguments)
        head, body = run_here(
            order.tool, answer, request_for(order, "run", ()), os.getpid(), drop_progress
        )
        refuse(head)
        return Output(body[: head["size"]], head["truncated_from"], head["media_type"])


def reconciled(tool: ToolSpec, key: str) -> ReconcileFinding:
    """Ask the tool for the outcome of the call with *key*, in this process."""
    try:
        ask = load_recorded(tool)
        return finding_of(run_here(tool, lambda: await_if_needed(reconcile(ask, key))))
    except Exception as error:  # noqa: BLE001 - tools are foreign code
        raise failure_of(error) from None


def run_here(tool: ToolSpec, function: Callable[..., Any], *arguments: object) -> Any:
    """Call *function*, which runs *tool*; async tools get a thread, and so a loop, of their own."""
    loaded = load_recorded(tool)
    if any(map(inspect.iscoroutinefunction, (loaded.function, loaded.reconcile))):
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *arguments).result()
    return function(*arguments)


async def decide_all(place: Outside, stream: str, happened: Callable[[str], str]) -> bool:
    """Decide all that a person is asked for; return False if there is nothing.

    *happened* returns the resolution of a call in doubt, by its key.
    """
    state = await place.state(stream)
    asked = [call for call in state.open_calls if call.asking and not call.unanswered]
    for call in asked:
        assert call.approval is not None, "a call that asks has an approval"
        doubt = call.approval.question == "did_it_happen"
        said = happened(f"{stream}/{call.effect}") if doubt else None
        decision = {
            "approval": call.approval.id,
            "digest": call.approval.digest,
            "verdict": "deny" if said == "do_not_run" else "grant",
            "resolution": said,
            "by": "crash kit",
        }
        await place.say(stream, DecisionGiven.model_validate(decision))
    return bool(asked)


async def last_event(place: Outside, stream: str) -> str:
    """Name the last event of the session."""
    types = await place.types(stream)
    return f"last event {types[-1]}, version {len(types)}" if types else "no event"


async def course_of(
    place: Outside,
    stream: str,
    case: CrashCase,
    starts: Counter[str],
    early: Collection[str] = (),
) -> Course:
    """Return what became of the session."""
    return Course(
        stream=stream,
        facts=await place.facts(stream),
        budget=await place.facts(sibling(stream, "budget")),  # type: ignore[arg-type]  # the facts of that stream
        effects=case.effects(),
        starts=starts,
        early=tuple(early),
    )
