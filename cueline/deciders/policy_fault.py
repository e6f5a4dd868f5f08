"""Finds contradictions in a policy whose single values are valid."""

import re
from collections.abc import Collection, Iterator

from cueline.deciders.pattern import matches_any
from cueline.events.agent import Hook, Policy, Rule

_URL = r"https?://[^/@\s]+(/\S*)?$|\$[A-Za-z_]\w*$"
"""The pattern of a URL without user and password, because the URL is recorded."""
_FITTED = ("tools", "tags", "phases", "paths", "commands", "may_grant")


def faults(
    policy: Policy, tools: Collection[str] | None = None, called: str = "tool of the agent"
) -> Iterator[tuple[str, str]]:
    """Yield each contradictory key with the reason.

    Args:
        policy: the policy to check.
        tools: the names of the agent's tools, if they are known.
        called: the word for the tools in the text of a reason.
    """
    yield from _bands(policy)
    yield from _times(policy)
    if "off" in policy.approval and len(policy.approval) > 1:
        yield "approval", '"off" is no rules at all; leave it out beside others'
    for index, rule in enumerate(policy.rules):
        key = f"rules.{index}"
        if rule.name in {earlier.name for earlier in policy.rules[:index]}:
            yield f"{key}.name", f"two rules are called {rule.name!r}"
        for name, reason in _of_rule(rule, tools, called):
            yield f"{key}.{name}", reason
    for index, hook in enumerate(policy.hooks):
        for name, reason in _of_hook(hook, policy):
            yield f"hooks.{index}.{name}", reason


def _bands(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.ask_from_usd < policy.notify_from_usd:
        yield "ask_from_usd", f"it is below notify_from_usd, {policy.notify_from_usd}"
    if policy.deny_from_usd is not None and policy.deny_from_usd < policy.ask_from_usd:
        yield "deny_from_usd", f"it is below ask_from_usd, {policy.ask_from_usd}"


def _times(policy: Policy) -> Iterator[tuple[str, str]]:
    after, deadline = policy.auto_approve_after, policy.approval_seconds
    if after is not None and after >= deadline:
        yield (
            "auto_approve_after",
            f"a question expires before, after {deadline:g} s (approval_seconds)",
        )
    if policy.escalate_to and policy.on_expiry != "escalate":
        yield "escalate_to", 'it needs on_expiry = "escalate"'
    for rule in policy.rules if policy.escalate_to else ():
        # Escalation lifts no requirement: the people who are asked then need the right to grant.
        people = _named(policy.escalate_to, rule.may_grant)
        if people is not None and len(people) < rule.votes:
            takes = f"the rule {rule.name!r} takes {rule.votes} who may grant it"
            yield "escalate_to", f"{takes}, and {len(people)} of these may"


def _named(*groups: tuple[str, ...]) -> set[str] | None:
    """Return the people who are in all *groups*; None if a group has patterns, or all are empty."""
    named = [set(group) for group in groups if group]
    if not named or any("*" in name or "?" in name for name in set.union(*named)):
        return None
    return set.intersection(*named)


def _of_rule(rule: Rule, tools: Collection[str] | None, called: str) -> Iterator[tuple[str, str]]:
    if not rule.name.strip():
        yield "name", "it is empty; the name is what is recorded"
    for name in _FITTED:
        if not all(map(str.strip, getattr(rule, name))):
            yield name, "an empty text fits nothing; leave it out"
    people = _named(rule.may_grant)
    if people is not None and len(people) < rule.votes:
        yield "votes", f"it takes {rule.votes} people, and {len(people)} may grant it"
    for name in ("may_grant", "votes", "exclude_requester"):
        if rule.answer != "ask" and name in rule.model_fields_set:
            yield name, f'it says who may allow it, and the answer is "{rule.answer}"'
    for pattern in rule.tools if tools is not None else ():
        if not any(matches_any(tool, [pattern]) for tool in tools or ()):
            yield "tools", f"no {called} is called {pattern!r}"


def _of_hook(hook: Hook, policy: Policy) -> Iterator[tuple[str, str]]:
    if bool(hook.command) == bool(hook.url):
        yield "command", "a hook has either a command or a url"
    if hook.url is not None and not re.match(_URL, hook.url):
        yield "url", "it is like https://…, or the $NAME of a variable that holds it"
    if hook.on != "reminder" and hook.after_seconds:
        yield "after_seconds", "only a reminder comes after a time"
    if hook.on == "reminder" and not 0 < hook.after_seconds < policy.approval_seconds:
        yield (
            "after_seconds",
            f"a question waits from 0 to {policy.approval_seconds:g} s (approval_seconds)",
        )
