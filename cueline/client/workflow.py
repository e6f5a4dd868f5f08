"""Checks whether the file of a workflow can run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from cueline.agents.agent import Agent
from cueline.agents.workflow import Workflow
from cueline.config.problem import SettingProblem
from cueline.errors import ConfigError, ToolImportError
from cueline.events.agent import AgentSpec


@dataclass(frozen=True, slots=True)
class WorkflowCheck:
    """A workflow in a file, and its faults."""

    file: str
    problems: Sequence[SettingProblem] = ()
    """The faults, each with its key in the file, if it has one."""
    agent: AgentSpec | None = None
    """The recorded form; None if there is a fault."""


def check_workflow(file: str | PathLike[str]) -> WorkflowCheck:
    """Find the faults of a workflow's file, its tools and its agents.

    The tools are imported, as for a start; no key of a provider is needed.
    """
    name = str(file)
    try:
        flow = Agent.from_file(file)
        if not isinstance(flow, Workflow):
            why = 'it is no workflow, which has provider = "workflow"'
            return WorkflowCheck(name, [SettingProblem("provider", why)])
        if found := flow.checked()[1]:
            return WorkflowCheck(name, [SettingProblem(*each) for each in found])
        return WorkflowCheck(name, agent=flow.spec())
    except ConfigError as error:
        keyed = re.fullmatch(r"key '(.+?)': (.*)", error.reason, re.DOTALL)
        if error.subject == name and keyed:
            return WorkflowCheck(name, [SettingProblem(*keyed.groups())])
        said = error.reason if error.subject == name else str(error)
        return WorkflowCheck(name, [SettingProblem("", said)])
    except ToolImportError as error:
        return WorkflowCheck(name, [SettingProblem("", str(error))])
