"""Judges each call once, and adds the judgement to the fact that requests the call."""

import hashlib

from cueline.deciders.policy import NOT_ESTIMATED, judge
from cueline.deciders.session.delegation import too_deep
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call
from cueline.deciders.startup_file import ASKS, changes_startup_file, own_modules
from cueline.events.message import Arguments, Estimate, ToolCall, canonical_json
from cueline.events.session import (
    ApprovalResolved,
    CallsAdded,
    Judgement,
    ModelReplied,
    ToolAsked,
    calls_of,
)
from cueline.events.start import starts_child


def judge_reply(state: SessionState, replied: ModelReplied) -> ModelReplied:
    """Return *replied* with the judgement of each requested call."""
    if not replied.calls:
        return replied
    judged = {
        effect: _judged_call(state, effect, call, replied.estimates.get(effect, NOT_ESTIMATED))
        for effect, call in calls_of(replied).items()
    }
    most = state.limit_state.limits.max_tool_calls_per_turn
    for effect in list(judged)[most:]:
        judged[effect] = _beyond(judged[effect], most)
    return replied.model_copy(update={"judged": judged})


def judge_added(state: SessionState, added: CallsAdded) -> CallsAdded:
    """Return *added* with the judgement of each call.

    If a needed step has `auto_approve = false`, a person is asked about the call in any case.
    """
    progress = state.progress
    assert progress is not None, "only a plan adds calls"
    judged = {}
    for effect, call in added.calls.items():
        if progress.steps[call.name].wait:
            judged[effect] = Judgement(answer="allow", rule="")
            continue
        judgement = _judged_call(state, effect, call, NOT_ESTIMATED)
        asks = [n for n in progress.needs[call.name] if not progress.steps[n].auto_approve]
        if asks and judgement.answer in ("allow", "notify") and not judgement.problem:
            rule = f"the step {asks[0]} is not approved by itself"
            judgement = judgement.model_copy(update={"answer": "ask", "rule": rule})
        judged[effect] = judgement
    return added.model_copy(update={"judged": judged})


def judge_edit(state: SessionState, resolved: ApprovalResolved) -> ApprovalResolved:
    """Return *resolved* with the judgement of the edited call."""
    call = state.call_of_approval(resolved.approval)
    if call is None or resolved.verdict != "granted" or resolved.edit is None:
        return resolved
    estimate = Estimate(usd=resolved.usd)
    judged = _judged(state, call.effect, call.tool, resolved.edit, estimate)
    return resolved.model_copy(update={"judged": judged})


def judge_held(state: SessionState, call: Call, asked: ToolAsked) -> ToolAsked:
    """Return *asked* with a judgement if what an allowed call would change needs a person's yes."""
    if not call.holds or call.judged.answer not in ("allow", "notify"):
        return asked
    agent = state.agent
    place = agent.workspace.path if agent.workspace else ""
    if not changes_startup_file(asked.paths, own_modules(agent), place):
        return asked
    judged = call.judged.model_copy(update={"answer": ASKS.answer, "rule": ASKS.name})
    return asked.model_copy(update={"judged": judged})


def _judged_call(state: SessionState, effect: str, call: ToolCall, estimate: Estimate) -> Judgement:
    problem = _problem(state, call)
    if problem:
        digest = digest_of(state, effect, call.name, call.arguments)
        return Judgement(answer="allow", rule="", digest=digest, problem=problem)
    return _judged(state, effect, call.name, call.arguments, estimate)


def _judged(
    state: SessionState, effect: str, tool: str, arguments: Arguments, estimate: Estimate
) -> Judgement:
    assert state.setup is not None, "a call belongs to a session that was started"
    agent = state.setup.agent
    judged = judge(
        agent.policy,
        state.setup.tools[tool],
        arguments,
        estimate=estimate,
        workspace=agent.workspace,
        standing=state.setup.standing,
        modules=own_modules(agent),
    )
    digest = digest_of(state, effect, tool, arguments)
    problem = _denied(judged) if judged.answer == "deny" else ""
    return judged.model_copy(update={"digest": digest, "problem": problem})


def _problem(state: SessionState, call: ToolCall) -> str:
    """Return why *call* cannot be judged; empty for a valid call."""
    assert state.setup is not None, "only a session that was started asks a model"
    if call.name not in state.setup.tools and not call.problem:
        known = ", ".join(sorted(state.setup.tools))
        return f"There is no tool {call.name!r}; the tools are: {known or 'none'}."
    if call.malformed is not None and not call.problem:
        return "The arguments were not a JSON object; nothing was run."
    if call.problem or not starts_child(state.setup.tools[call.name]):
        return call.problem or ""
    limits = state.limit_state.limits
    return "" if state.setup.family.depth < limits.max_depth else too_deep(limits)


def _denied(judged: Judgement) -> str:
    return f"This call is denied by a rule ({judged.rule}); nothing was run."


def _beyond(judged: Judgement, most: int) -> Judgement:
    """Return the judgement of a call beyond the limit *most* of calls in a turn."""
    why = f"Not run: limits.max_tool_calls_per_turn is {most}; ask again for what is still needed."
    return judged.model_copy(update={"problem": judged.problem or why})


def digest_of(state: SessionState, effect: str, tool: str, arguments: Arguments) -> str:
    """Return the digest of the call *effect* of the session (I9)."""
    assert state.setup is not None, "a call belongs to a session that was started"
    spec = state.setup.tools.get(tool)
    workspace = state.setup.agent.workspace
    return order_digest(
        session=state.stream,
        effect=effect,
        tool=tool,
        tool_digest=spec.digest if spec else "",
        arguments=arguments,
        workspace=(workspace.machine, workspace.path) if workspace else None,
    )


def order_digest(
    *,
    session: str,
    effect: str,
    tool: str,
    tool_digest: str,
    arguments: object,
    workspace: tuple[str, str] | None,
) -> str:
    """Return the digest of the exact call; the runner checks this digest (I9)."""
    whole = [session, effect, tool, tool_digest, arguments, workspace]
    return hashlib.sha256(canonical_json(whole)).hexdigest()
