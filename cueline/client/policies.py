"""Checks a policy for contradictions, and judges recorded calls by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from cueline.agents.agent_file import agent_in
from cueline.config.config_source import read_table, read_toml
from cueline.config.problem import SettingProblem
from cueline.deciders.backtest import NEEDED, Backtest, BacktestFinding, Sum, sum_findings
from cueline.deciders.policy import rules_of
from cueline.deciders.policy_fault import faults
from cueline.errors import ConfigError
from cueline.events.agent import Policy, Rule
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent, to_us
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """A policy in a file, and its faults."""

    file: str
    policy: Policy
    problems: Sequence[SettingProblem] = ()
    """The faults, each with its key in the file."""
    unchecked: Sequence[str] = ()
    """Tools whose names are known only when their code runs; rules for tools were not checked."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules; the rules of its profiles come first."""
        return rules_of(self.policy)


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One recorded call, and the policy's answer."""

    session: str
    effect: str
    tool: str
    arguments: Mapping[str, object]
    before: str
    """`allowed`, `asked` or `denied`."""
    answer: str
    """`allow`, `notify`, `ask` or `deny`."""
    rule: str
    ran: bool

    @property
    def otherwise(self) -> bool:
        """Whether the policy's answer differs from the recorded one."""
        same = {"allowed": ("allow", "notify"), "asked": ("ask",), "denied": ("deny",)}
        return self.answer not in same[self.before]


@dataclass(frozen=True, slots=True)
class PolicyBacktest:
    """The recorded calls, judged by another policy."""

    calls: tuple[JudgedCall, ...]
    sums: tuple[Sum, ...]
    """The groups of calls, the strictest answer first."""

    @property
    def stopped_cost(self) -> Decimal:
        """The estimated costs of the calls that ran without a question, and now would not."""
        return sum((each.stopped_cost for each in self.sums), Decimal(0))


def check_policy(file: str | Path) -> PolicyCheck:
    """Find the faults of a policy in an agent file, or in a file with only its keys.

    No code of tools runs.
    """
    path, name = Path(file), str(file)
    try:
        table = read_toml(path, "policy file")
    except ConfigError as error:
        return PolicyCheck(name, Policy(), [SettingProblem("", error.reason)])
    alone = not {"provider", "policy"} & table.keys()
    layer, found = read_table({"policy": table if alone else table.get("policy", {})}, path)
    policy = Policy(**{key.removeprefix("policy."): each.value for key, each in layer.items()})
    if not found:
        found = [SettingProblem(f"policy.{key}", reason) for key, reason in faults(policy)]
    if not found and "provider" in table:
        return _of_agent(table, path)
    if alone:
        found = [SettingProblem(each.key.removeprefix("policy."), each.reason) for each in found]
    return PolicyCheck(name, policy, found)


def _of_agent(table: dict[str, Any], file: Path) -> PolicyCheck:
    """Return the effective policy of the agent in *file*, and its faults for the agent's tools."""
    try:
        agent = agent_in(table, file).agent
        names = agent.tool_names()
    except ConfigError as error:
        return PolicyCheck(str(file), Policy(), [SettingProblem("", error.reason)])
    unknown = [tool for tool, name in names.items() if name is None]
    known = None if unknown else [name for name in names.values() if name is not None]
    wrong = faults(agent.policy, known, agent.RULE_SUBJECT)
    found = [SettingProblem(f"policy.{key}", reason) for key, reason in wrong]
    return PolicyCheck(str(file), agent.whole_policy, found, unknown)


async def backtest_policy(
    log: OpenLog, policy: str | Path | Policy, *, since: datetime | None = None
) -> PolicyBacktest:
    """Judge the calls of a log, from *since* on, by another policy; change nothing.

    Raises:
        ConfigError: the policy has a fault; the message names the first.
        LogUnavailableError: the log cannot be read.
        CorruptEventError: an event cannot be read.
    """
    log.check_whole()
    if isinstance(policy, str | Path):
        checked = check_policy(policy)
        if checked.problems:
            raise ConfigError(checked.file, str(checked.problems[0]))
        policy = checked.policy
    since_us = to_us(since) if since else 0
    test, journal = Backtest(policy), log.journal()
    async for recorded in log.store.read_all(0, {"session"}):
        if _is_needed(recorded):
            fact = cast("SessionEvent", await journal.fact_of(recorded))
            test.add(recorded.stream, fact, counts=recorded.recorded_us >= since_us)
    found = list(test.findings)
    return PolicyBacktest(tuple(map(_judged, found)), tuple(sum_findings(found)))


def _is_needed(recorded: RecordedEvent) -> bool:
    """Whether an event has to be decoded; False for a reply without calls."""
    payload = recorded.payload
    if recorded.type not in NEEDED or payload is None:
        return False
    return recorded.type != "ModelReplied" or b'"calls":[{' in payload


def _judged(found: BacktestFinding) -> JudgedCall:
    return JudgedCall(
        session=shown(found.session),
        effect=found.effect,
        tool=found.call.name,
        arguments=found.call.arguments,
        before=found.before,
        answer=found.judged.answer,
        rule=found.judged.rule,
        ran=found.ran,
    )
