"""Judges calls by a policy.

Of all matching rules, the strictest answer counts: deny, ask, notify, allow. The
part that depends only on the tool is computed once, so a call of a tool without
rules about arguments costs one dict lookup.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cueline.deciders.pattern import (
    escape_glob,
    matches_any,
    may_run,
    named_paths,
    path_matches,
    paths_of,
    runs_only,
    texts_of,
)
from cueline.deciders.shell_command import COMMANDS, commands_of
from cueline.deciders.standing_grant import StandingGrant
from cueline.deciders.startup_file import ASKS, writes_startup_file
from cueline.events.agent import (
    AgentSpec,
    Answer,
    Declared,
    Policy,
    Profile,
    Rule,
    ToolSpec,
    Workspace,
)
from cueline.events.message import Arguments, Estimate, canonical_json
from cueline.events.session import Judgement

_EXACTLY: Final = "sha256:"
_SENSITIVE: Final = (Rule(name="sensitive", answer="ask", sensitive=True),)

NOT_ESTIMATED: Final = Estimate(problem="it was not estimated")


class ToolGate(Struct, frozen=True):
    """The policy's judgement of one tool; it may depend on the arguments."""

    settled: Judgement | None
    """The judgement; None if it depends on the arguments."""
    rules: tuple[Rule, ...] = ()


def rules_of(policy: Policy) -> tuple[Rule, ...]:
    """Return all rules of a policy; the rules of its profiles come first."""
    ready_made = [rule for profile in policy.approval for rule in _profile(profile, policy)]
    return (*ready_made, *policy.rules)


def _profile(profile: Profile, policy: Policy) -> tuple[Rule, ...]:
    match profile:
        case "off":
            return ()
        case "sensitive":
            return _SENSITIVE
        case "cost":
            return _cost_bands(policy)
        case "all_writes":
            writing: tuple[Declared, ...] = ("idempotent", "reconcile", "nothing")
            return (Rule(name="all_writes", answer="ask", declared=writing),)
        case "phase_gates":
            return (Rule(name="phase_gates", answer="ask", phases=("*",)),)


def _cost_bands(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules of the profile `cost`; each rule begins at its lower bound (C10)."""
    bands: tuple[tuple[str, Answer, Decimal | None], ...] = (
        ("cost", "allow", Decimal(0)),
        ("cost", "notify", policy.notify_from_usd),
        ("cost", "ask", policy.ask_from_usd),
        ("cost cap", "deny", policy.deny_from_usd),
    )
    return tuple(
        Rule(name=name, answer=answer, usd_from=bound)
        for name, answer, bound in bands
        if bound is not None
    )


def gate_of(policy: Policy, tool: ToolSpec) -> ToolGate:
    """Return the part of the policy's judgement that depends only on *tool*."""
    rules = tuple([rule for rule in rules_of(policy) if _is_about(rule, tool)])
    if tool.estimates or any(map(_reads_arguments, rules)):
        return ToolGate(None, rules)
    return ToolGate(_strongest(rules, Estimate(usd=tool.cost_usd), _default_answer(policy)))


def tools_that_may_ask(agent: AgentSpec) -> tuple[str, ...]:
    """Return the tools of *agent* whose calls may need an approval."""
    return tuple(tool.name for tool in agent.tools if may_ask(agent.policy, tool))


def may_ask(policy: Policy, tool: ToolSpec) -> bool:
    """Whether a call of *tool* may need an approval under *policy*."""
    gate = gate_of(policy, tool)
    automatic = policy.auto_approve or policy.auto_approve_after is not None
    if gate.settled is not None:
        return gate.settled.answer == "ask" and not (automatic and not gate.settled.people_only)
    return any(
        _asks(rule, tool) and not (automatic and not _needs_people(rule)) for rule in gate.rules
    )


def _needs_people(rule: Rule) -> bool:
    """Whether the rule names approvers or votes, so that no automatic grant can meet it."""
    return rule.votes > 1 or bool(rule.may_grant) or rule.exclude_requester


def _asks(rule: Rule, tool: ToolSpec) -> bool:
    """Whether *rule* may require an approval for a call of *tool*, also at an unknown cost."""
    unknown = tool.estimates and rule.usd_from is not None
    return rule.answer == "ask" or (rule.answer == "deny" and unknown)


def judge(
    policy: Policy,
    tool: ToolSpec,
    arguments: Arguments,
    *,
    estimate: Estimate = NOT_ESTIMATED,
    workspace: Workspace | None = None,
    gate: ToolGate | None = None,
    standing: Iterable[StandingGrant] = (),
    modules: tuple[str, ...] = (),
) -> Judgement:
    """Return the judgement of a call by its tool's declarations and its arguments.

    A call that may write a file which a later start reads or runs is never allowed without an
    approval.

    Args:
        policy: the rules.
        tool: the tool as recorded.
        arguments: the arguments of the call.
        estimate: the estimated cost, for tools that estimate each call.
        workspace: the folder below which paths count as relative.
        gate: the result of `gate_of`, if it is known.
        standing: the grants for the rest of the session.
        modules: globs for the modules of the agent's own tools; see `own_modules`.
    """
    gate = gate or gate_of(policy, tool)
    place = workspace.path if workspace else ""
    judged = gate.settled
    if judged is None:
        hits = [rule for rule in gate.rules if _rule_matches(rule, tool, arguments, place)]
        cost = estimate if tool.estimates else Estimate(usd=tool.cost_usd)
        judged = _strongest(_rules_at(cost, hits), cost, _default_answer(policy))
    if judged.answer in ("allow", "notify") and writes_startup_file(
        tool, arguments, modules, place
    ):
        judged = judged.model_copy(update={"answer": ASKS.answer, "rule": ASKS.name})
    if judged.answer == "ask":
        for each in standing:
            meets = not judged.people_only or judged.demand == each.demand
            if meets and _covers(each, tool, arguments, workspace):
                allowed = {"answer": "allow", "rule": f"always allowed by {each.by}"}
                return judged.model_copy(update=allowed)
    return judged


def _default_answer(policy: Policy) -> str:
    """Return the policy's answer to a call that no rule matches."""
    if policy.approval == ("sensitive",) and not policy.rules:
        return "not sensitive"
    return "no rule" if policy.rules or {*policy.approval} - {"off"} else "off"


def _rules_at(cost: Estimate, rules: Iterable[Rule]) -> Iterator[Rule]:
    """Return the rules that apply at *cost*.

    For an unknown cost, a rule that might deny asks people instead.
    """
    for rule in rules:
        if rule.usd_from is None:
            yield rule
        elif cost.usd is not None:
            if cost.usd >= rule.usd_from:
                yield rule
        elif rule.answer == "ask":
            yield rule
        elif rule.answer == "deny":
            yield rule.model_copy(update={"answer": "ask", "may_grant": ("*",)})


def _strongest(rules: Iterable[Rule], cost: Estimate, otherwise: str) -> Judgement:
    said: dict[Answer, list[Rule]] = {}
    for rule in rules:
        said.setdefault(rule.answer, []).append(rule)
    answers: tuple[Answer, ...] = ("deny", "ask", "notify", "allow")
    for answer in answers:
        if answer in said:
            deciding = said[answer]
            return Judgement(
                answer=answer,
                rule=", ".join(dict.fromkeys(rule.name for rule in deciding)),
                usd=cost.usd,
                unpriced=cost.problem,
                votes=max(rule.votes for rule in deciding),
                may_grant=tuple(rule.may_grant for rule in deciding if rule.may_grant),
                exclude_requester=any(rule.exclude_requester for rule in deciding),
            )
    return Judgement(answer="allow", rule=otherwise, usd=cost.usd, unpriced=cost.problem)


def _is_about(rule: Rule, tool: ToolSpec) -> bool:
    """Whether *rule* may match calls of *tool*."""
    phases = [tag.removeprefix("phase:") for tag in tool.tags if tag.startswith("phase:")]
    return (
        (not rule.tools or matches_any(tool.name, rule.tools))
        and (rule.sensitive is None or rule.sensitive == tool.sensitive)
        and (not rule.declared or tool.declared in rule.declared)
        and (not rule.tags or any(tag in rule.tags for tag in tool.tags))
        and (not rule.phases or any(matches_any(phase, rule.phases) for phase in phases))
        and (rule.usd_from is None or tool.estimates or _costs(tool, rule.usd_from))
    )


def _costs(tool: ToolSpec, usd: Decimal) -> bool:
    return tool.cost_usd is not None and tool.cost_usd >= usd


def _reads_arguments(rule: Rule) -> bool:
    sized = rule.items_over is not None or rule.bytes_over is not None
    return bool(rule.paths or rule.commands or sized)


def _rule_matches(rule: Rule, tool: ToolSpec, arguments: Arguments, place: str) -> bool:
    """Whether *rule*, which may match calls of *tool*, matches *arguments*."""
    if rule.paths and not _path_matches(rule, tool, arguments, place):
        return False
    if rule.commands and not _command_matches(rule, arguments):
        return False
    if rule.items_over is not None and _longest_list(arguments) <= rule.items_over:
        return False
    return rule.bytes_over is None or len(canonical_json(arguments)) > rule.bytes_over


def _command_matches(rule: Rule, arguments: Arguments) -> bool:
    """Whether a command of the call matches the rule's commands.

    A rule that allows has to match each command. Any other rule has to match one command in any
    text; an unresolved command matches, but only in an argument named `command`.
    """
    commands = tuple(commands_of(arguments))
    if rule.answer == "allow":
        return all(runs_only(each, rule.commands) for each in commands or texts_of(arguments))
    others = texts_of({key: each for key, each in arguments.items() if key not in COMMANDS})
    return any(may_run(each, rule.commands) for each in commands) or any(
        may_run(each, rule.commands, unknown=False) for each in others
    )


def _path_matches(rule: Rule, tool: ToolSpec, arguments: Arguments, place: str) -> bool:
    """Whether a path of the call matches the rule's paths.

    An unknown path matches, unless the rule allows. A path is unknown if the call omits it
    and the tool's schema has no default.
    """
    if rule.answer != "allow" and None in named_paths(tool, arguments).values():
        return True
    return any(path_matches(path, rule.paths, place) for path in paths_of(tool, arguments))


def _longest_list(value: object) -> int:
    match value:
        case Mapping():
            return max(map(_longest_list, value.values()), default=0)
        case list() | tuple():
            return max(len(value), *map(_longest_list, value), 0)
    return 0


def always_scope(tool: ToolSpec, arguments: Arguments) -> tuple[str, ...]:
    """Return the scope of "always allow this": the call's paths, or else its exact arguments."""
    paths = tuple(dict.fromkeys(map(escape_glob, paths_of(tool, arguments)))) if tool.paths else ()
    return paths or (exact_scope(arguments),)


def exact_scope(arguments: Arguments) -> str:
    """Return the scope of a `StandingGrant` for exactly *arguments*."""
    return _EXACTLY + hashlib.sha256(canonical_json(dict(sorted(arguments.items())))).hexdigest()


def _covers(
    standing: StandingGrant, tool: ToolSpec, arguments: Arguments, workspace: Workspace | None
) -> bool:
    if standing.tool != tool.digest:
        return False
    if exact_scope(arguments) in standing.within:
        return True
    paths = list(paths_of(tool, arguments)) if tool.paths else []
    place = workspace.path if workspace else ""
    return bool(paths) and all(path_matches(path, standing.within, place) for path in paths)
