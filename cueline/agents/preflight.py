"""Checks that a session can run here, before anything is recorded."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cueline.actors.presence import machine_name
from cueline.agents.agent import Agent
from cueline.agents.secret import check_secrets
from cueline.config.environment import HERE
from cueline.deciders.policy import NOT_ESTIMATED, judge, tools_that_may_ask
from cueline.deciders.session.current_agent import with_tools
from cueline.deciders.session.delegation import allowances_below, with_children
from cueline.deciders.startup_file import own_modules
from cueline.errors import ConfigError
from cueline.events.agent import (
    AgentSpec,
    Limits,
    ModelChoice,
    ToolSpec,
    Workspace,
    each_model,
    own_model,
    with_model,
)
from cueline.events.budget import Allowance
from cueline.events.log_url import MEMORY, LogName, LogUrl
from cueline.events.message import Arguments
from cueline.events.session import Judgement
from cueline.providers.mcp_logins import McpLogins


async def judge_edit(agent: AgentSpec, tool: ToolSpec, arguments: Arguments) -> Judgement:
    """Return the judgement of a call of *tool* with edited *arguments*, with its estimated cost.

    Raises:
        ConfigError: the arguments are invalid, or a rule denies the call.
    """
    from cueline.tools.arguments import check_call
    from cueline.tools.recorded_tool import estimate

    if (problem := check_call(tool, arguments)) is not None:
        raise ConfigError("the edit", problem)
    cost = await estimate(tool, arguments) if tool.estimates else NOT_ESTIMATED
    judged = judge(
        agent.policy,
        tool,
        arguments,
        estimate=cost,
        workspace=agent.workspace,
        modules=own_modules(agent),
    )
    if judged.answer == "deny":
        raise ConfigError("the edit", f"a rule denies it ({judged.rule})")
    return judged


def agent_to_record(
    agent: Agent, environ: Mapping[str, str] = HERE, *, waived: Collection[str] = ()
) -> AgentSpec:
    """Return the recorded form of *agent*, after all checks.

    The recorded form includes the content of a model file, so a resume does not need the file.
    *waived* secrets do not have to be known here.

    Raises:
        ConfigError: correct the setting, file or variable that the message names.
        ToolImportError: make the tool importable where it will run.
    """
    spec = agent.spec()
    above = allowances_below("", spec.limits, ())
    children = {}
    for name, each in spec.agents.items():
        placed = each.model_copy(update={"workspace": each.workspace or spec.workspace})
        checked = _checked(placed, environ, waived, above)
        children[name] = checked.model_copy(update={"workspace": each.workspace})
    return _checked(spec, environ, waived, ()).model_copy(update={"agents": children})


def _checked(
    spec: AgentSpec,
    environ: Mapping[str, str],
    waived: Collection[str],
    allowances: Sequence[Allowance],
) -> AgentSpec:
    from cueline.providers.defaults import with_model_file
    from cueline.providers.factory import check_agent
    from cueline.tools.shell import check_commands

    if spec.plan is None:
        spec = with_model_file(spec)
        spec = spec.model_copy(update={"fallback": tuple(map(with_model_file, spec.fallback))})
        check_agent(spec, environ)
        check_limits(spec, allowances)
        spec = _with_windows(spec)
    _check_workspace(spec)
    check_commands(spec)
    check_secrets(spec, waived, environ)
    return spec


def _check_workspace(spec: AgentSpec) -> None:
    """Raise if a tool of the agent needs a workspace, and the agent has none.

    Raises:
        ConfigError: name or create the folder.
    """
    needing = [tool.name for tool in spec.tools if tool.needs_workspace]
    if spec.workspace is None:
        if needing and spec.sandbox is None:
            tools = ", ".join(needing)
            raise ConfigError(
                spec.name,
                f"it has no workspace for {tools}; "
                "name a folder as its `workspace`, or with --workspace",
            )
        return
    _check_folder(spec.workspace)


def _check_folder(place: Workspace) -> None:
    """Raise if the workspace *place* does not exist, because each call in it would fail.

    Raises:
        ConfigError: create the folder, or restore it.
    """
    if place.machine == machine_name() and not Path(place.path).is_dir():
        raise ConfigError(place.path, "the workspace is not a folder; make it first")


class LogFiles(NamedTuple):
    """Whether the log exists, and its files."""

    exists: bool
    files: Sequence[Path]


def check_log(log: LogName, *, shared: bool = False) -> LogFiles:
    """Return the files of *log*, and whether the log exists; open and create nothing.

    Raises:
        ConfigError: the URL's scheme is unknown.
        LogUnavailableError: no log can be at the URL, or with *shared*, no log that several
            processes can open.
    """
    from cueline.stores.backend import backend_of

    backend = backend_of(log)
    backend.check(shared=shared)
    return LogFiles(backend.exists(), backend.files())


def found_log(log: LogName) -> tuple[Path, str] | None:
    """Return path and id of a *log* that a copied folder may contain; see `LogBackend.found`."""
    from cueline.stores.backend import backend_of

    return backend_of(log).found()


def sqlite_version() -> str:
    """Return the version and module of the SQLite that logs use.

    Raises:
        ConfigError: SQLite is too old; the message says what to install.
    """
    from cueline.sqlite_library import sqlite_library

    library = sqlite_library()
    return f"{library.sqlite_version} ({library.__name__})"


def has_full_text() -> bool:
    """Whether SQLite was built with FTS5, by which `audit` finds words."""
    from cueline.sqlite_library import sqlite_library

    with closing(sqlite_library().connect(":memory:")) as memory:
        used = memory.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')")
        return bool(used.fetchone()[0])


def check_log_is_out_of_reach(agent: AgentSpec, log: LogName) -> None:
    """Raise if the tools can reach *log* in the agent's workspace.

    Raises:
        ConfigError: the message says where to put the log.
    """
    from cueline.files import LOG_FOLDER
    from cueline.stores.backend import backend_of
    from cueline.tools.folder import names_log_folder, within
    from cueline.tools.shell import check_commands

    for each in agent.agents.values():
        check_log_is_out_of_reach(each, log)
    place = agent.workspace
    if place is None or place.machine != machine_name():
        return
    files = backend_of(log).files()
    if not all(names_log_folder(found.parts) for found in within(place, files)):
        raise ConfigError(
            str(log),
            f"the log is inside the workspace {place.path}, where tools can destroy it; "
            f"name a log outside of it, or in a folder `{LOG_FOLDER}`, which no file tool touches",
        )
    check_commands(agent, files)


def commands_problem_beside(log: LogName, workspace: Path | None) -> str:
    """Return why commands cannot run isolated in *workspace*, out of reach of *log*; or nothing.

    The default of *workspace* is the current folder.
    """
    from cueline.stores.backend import backend_of
    from cueline.tools.shell import commands_problem

    return commands_problem(workspace, backend_of(log).files())


def check_answerable(agent: AgentSpec, log: LogName, *, attended: bool) -> None:
    """Raise if no person could answer the questions of *agent* (D36).

    People can answer from each shell that can open the *log*.

    Raises:
        ConfigError: the message says how to make an answer possible.
    """
    told = any(hook.on != "notify" for hook in agent.policy.hooks)
    if attended or told or LogUrl.of(log).scheme != MEMORY:
        return
    if tools := [name for each in with_children(agent) for name in tools_that_may_ask(each)]:
        raise ConfigError(
            agent.name,
            f"it asks before it calls {', '.join(tools)}, and nobody can answer: no other "
            f"process can open the log {log}; run it in a terminal, or name a log in a file, "
            "or start it with --auto-approve",
        )


def check_resumed(
    agent: AgentSpec,
    log: LogName,
    *,
    waived: Collection[str],
    accept_changed_tools: bool,
    accept_with: str,
) -> tuple[ToolSpec, ...]:
    """Raise if a recorded agent, or an agent that it starts, cannot continue here with *log*.

    *waived* secrets do not have to be known here. Returns the changed tools in their current
    form, if a person accepts them; *accept_with* names the option for this.

    Raises:
        ConfigError: correct the setting, folder or variable that the message names.
        ToolChangedError: accept the changed tools, or restore them.
        ToolImportError: make the tool importable again.
    """
    from cueline.providers.factory import check_recorded_agent
    from cueline.tools.recorded_tool import changed_since, check_unchanged
    from cueline.tools.shell import check_commands

    tools = () if not accept_changed_tools else changed_since(agent.tools) + _changed_mcp(agent)
    now = with_tools(agent, tools)
    # A rerun has the results of its children.
    starts = not any(tool.recording for tool in now.tools)
    for each in with_children(now) if starts else [now]:
        check_recorded_agent(each, HERE)
        check_secrets(each, waived)
        changed_since(each.tools)
    check_unchanged(now.name, now.tools, accept_with)
    works = not now.tools or any(tool.runs for tool in now.tools)  # a rerun needs no files
    if now.workspace is not None and works:
        _check_folder(now.workspace)
        check_commands(now)
    check_log_is_out_of_reach(now, log)
    return tools


def _changed_mcp(agent: AgentSpec) -> tuple[ToolSpec, ...]:
    """Return the tools of MCP servers whose definition has changed, in their current form."""
    if not agent.mcp:
        return ()
    from cueline.tools.mcp.listing import changed_of

    return changed_of(agent, McpLogins(HERE))


def _with_windows(spec: AgentSpec) -> AgentSpec:
    """Return *spec* with the known context windows of its models."""
    from cueline.providers.prices import context_window

    others = tuple(
        each
        if each.context_window is not None
        else each.model_copy(update={"context_window": context_window(with_model(spec, each))})
        for each in spec.fallback
    )
    own = spec.context_window
    window = context_window(spec) if own is None else own
    return spec.model_copy(update={"context_window": window, "fallback": others})


def chosen_model(
    agent: AgentSpec,
    model: str | ModelChoice,
    allowances: Sequence[Allowance],
    environ: Mapping[str, str] = HERE,
) -> ModelChoice:
    """Check the *model* that a session of *agent* should use, and return it.

    A text is `PROVIDER/NAME`, or NAME for the agent's provider. If the agent's own model or a
    fallback has this name, the returned model has the same settings. Any other model of the
    agent's provider gets the settings of the agent's own model. A model of another provider has
    no parameters, address and key.

    Raises:
        ConfigError: correct the name, setting or variable that the message names.
    """
    from cueline.providers.defaults import with_model_file
    from cueline.providers.factory import check_agent

    choice = with_model_file(
        model if isinstance(model, ModelChoice) else _named_model(agent, model)
    )
    alone = with_model(agent, choice).model_copy(update={"fallback": ()})
    check_agent(alone, environ)
    check_limits(alone, allowances)
    return own_model(_with_windows(alone))


def _named_model(agent: AgentSpec, text: str) -> ModelChoice:
    from cueline.providers.registry import known_providers, provider_named

    before, slash, after = text.strip().partition("/")
    provider, name = (before, after) if slash else (agent.provider, before)
    default = provider_named(provider).default_model if slash else ""
    if not (name := name or default) or not name.isprintable():
        raise ConfigError("model", f"{text!r} names no model; write PROVIDER/NAME, or NAME")
    if not slash and name in known_providers():
        raise ConfigError("model", f"{text!r} is a provider; write {name}/NAME")
    for each in (own_model(agent), *agent.fallback):
        if (each.provider, each.model) == (provider, name):
            return ModelChoice(**each.model_dump(exclude={"retry"}))
    if provider != agent.provider:
        return ModelChoice(provider=provider, model=name)
    kept = {key: value for key, value in agent.parameters.items() if key != "script"}
    update = {"model": name, "parameters": kept, "context_window": None}
    return own_model(agent).model_copy(update=update)


def check_limits(spec: AgentSpec, allowances: Sequence[Allowance]) -> None:
    """Raise if the limits of *spec* or of its ancestors cannot be enforced.

    Raises:
        ConfigError: correct the limit or price that the message names.
    """
    from cueline.providers.prices import check_prices, check_room

    limits: list[Limits | Allowance] = [spec.limits, *allowances]
    money_limited = any(each.max_cost is not None for each in limits)
    for asking in each_model(spec):
        check_prices(asking, money_limited=money_limited)
        check_room(asking)
