"""The page on the client has each field of what its calls return."""

from dataclasses import fields
from pathlib import Path

import pytest

from cueline.client.compare import SessionDiff
from cueline.client.export import CallRow, Ending, Export, Metrics
from cueline.client.file_changes import FileDiff
from cueline.client.fleet import GroupRow, ScaleReceipt
from cueline.client.keys import KeyReceipt, KeyRow
from cueline.client.limits import Budget, LimitRow
from cueline.client.log import Copied
from cueline.client.log_check import LogCheck, SessionDifference
from cueline.client.policies import JudgedCall
from cueline.client.providers import ProviderRow
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.rerun import RerunDifference, RerunResult, UnansweredCall
from cueline.client.rows import AuditRow, BreakerRow, Costs, PendingRow, RunRow, SessionRow
from cueline.client.runs import BlueprintRow, RunnerRow
from cueline.client.sandboxes import PoolStatus, SandboxRow, SlotWaitRow
from cueline.client.seal import InclusionProof
from cueline.client.show import SessionDetails
from cueline.client.status import (
    FleetStatus,
    GroupStatus,
    LogStatus,
    NodeRow,
    ProcessRow,
    WaitRow,
    WorkerRow,
)
from cueline.client.verify import BadRow, Verified
from cueline.client.workflow import StepState, WorkflowState
from cueline.runtime.seal import SealReceipt
from cueline.telemetry.export import ExportReceipt

PAGE = (Path(__file__).parents[2] / "docs/reference/client.md").read_text()
BASES = {
    "SessionDetails": SessionRow,
    "PauseReceipt": Receipt,
    "StopReceipt": Receipt,
    "GroupStatus": GroupRow,
}
BASES |= {"DecisionReceipt": Receipt}
ROWS = [SessionRow, SessionDetails, PendingRow, Export, CallRow, Metrics, Ending, Budget, LimitRow]
ROWS += [Costs, AuditRow, Verified, BadRow, BreakerRow, LogStatus, ProcessRow, JudgedCall]
ROWS += [RerunResult, RerunDifference, UnansweredCall]
ROWS += [LogCheck, SessionDifference, ExportReceipt]
ROWS += [Copied, ProviderRow, KeyRow, KeyReceipt]
ROWS += [ScaleReceipt, GroupRow, FleetStatus, GroupStatus, NodeRow, WaitRow, WorkerRow]
ROWS += [SealReceipt, InclusionProof]
ROWS += [WorkflowState, StepState, FileDiff, SessionDiff]
ROWS += [RunRow, BlueprintRow, RunnerRow]
ROWS += [PoolStatus, SandboxRow, SlotWaitRow]
ROWS += [Receipt, PauseReceipt, StopReceipt, DecisionReceipt]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_the_page_has_each_field(row):
    section = PAGE.partition(f"### `{row.__name__}`\n")[2].partition("\n### ")[0]
    inherited: set[str] = set()
    if (base := BASES.get(row.__name__)) is not None:
        inherited = {each.name for each in fields(base)}

    told = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert told == {each.name for each in fields(row)} - inherited
