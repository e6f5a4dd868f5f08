"""The example log of `docs/guides/audit.md`: three sessions, on two days."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.approval import ApprovalDenied, ApprovalGranted, ApprovalOpened
from cueline.events.codec import Codec
from cueline.events.fleet import HostJoined, RunnerRegistered, RunnerRemoved, WorkerGroup
from cueline.events.inbox import MessageSent, StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.message import Cost, TextBlock, ToolCall, Usage
from cueline.events.session import (
    FileChange,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    SessionCompleted,
    SessionFailed,
    SessionStarted,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.stores.backend import backend_of

BEGIN = datetime(2026, 1, 30, 9, tzinfo=UTC)
TOOLS = tuple(
    ToolSpec(
        name=name, description="", parameters={}, declared=declared, target=f"x:{name}", digest="d"
    )
    for name, declared in (("run_command", "nothing"), ("write_file", "idempotent"))
)


class Example:
    """Appends the events of the example, a minute after one another."""

    def __init__(self, url) -> None:
        self.moment = BEGIN
        self.store = backend_of(url).open(self)
        self.journal = Journal(self.store, Codec(), self.now)
        self.appends = 0

    def now(self):
        return self.moment

    async def append(self, stream, *facts, expected=-1, actor="agent"):
        self.moment += timedelta(minutes=1)
        self.appends += 1
        write = FactWrite(stream, [facts], expected, actor=actor)
        await self.journal.append([write], key=f"k{self.appends}")

    async def start(self, name, agent, actor, goal, model="claude-sonnet-4-6", *, root=None):
        spec = AgentSpec(name=agent, provider="anthropic", model=model, tools=TOOLS)
        tree = {} if root is None else {"parent": root, "root": root, "depth": 1}
        asked = StartAsked(agent=spec, goal=goal, asked_at=self.moment, **tree)
        await self.append(f"inbox-default/{name}", asked, actor=actor)
        began = SessionStarted(agent=spec, goal=goal, open=False, attached=False, epoch=1, **tree)
        await self.append(f"session-default/{name}", began)

    async def turn(self, name, number, text, *calls, usd):
        effect = f"{number}.m"
        replied = ModelReplied(
            effect=effect,
            attempt=1,
            content=(TextBlock(text=text),),
            calls=tuple(
                ToolCall(id=f"c{n}", name=tool, arguments=given)
                for n, (tool, given) in enumerate(calls)
            ),
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(input=1000, output=50),
            cost=Cost(usd=Decimal(usd), prices="list"),
            model="claude-sonnet-4-6" if name != "night" else "claude-haiku-4-5",
            seconds=2.0,
        )
        requested = ModelRequested(effect=effect, attempt=1, digest="aa", prefix_digest="")
        begun = (requested, ModelStarted(effect=effect, attempt=1))
        await self.append(f"session-default/{name}", *begun, replied)

    async def call(self, name, effect, tool, output, *files, rule="not sensitive"):
        changes = tuple(FileChange(path, None, "", "ab", 0o644) for path in files)
        started = ToolStarted(effect=effect, attempt=1, tool=tool, runner="r1", epoch=1, rule=rule)
        returned = ToolReturned(
            effect=effect, attempt=1, output=output, changes=changes, seconds=1.5
        )
        await self.append(f"session-default/{name}", started, returned)

    async def ask(self, name, effect, command, closed):
        now, stream = self.moment, f"approval-default/{name}.{effect}.1"
        opened = ApprovalOpened(
            session=f"session-default/{name}",
            effect=effect,
            digest=getattr(closed, "digest", "") or "e2" * 8,
            question="may_it_run",
            tool="run_command",
            arguments={"command": command},
            summary=command,
            rule="removals",
            epoch=1,
            opened_at=now,
            deadline_at=now + timedelta(hours=1),
        )
        await self.append(stream, opened)
        await self.append(stream, closed, actor=f"user:{closed.by}")


async def fill(url) -> None:
    """Append the example to an empty log."""
    log = Example(url)
    group = {kind: WorkerGroup(kind=kind) for kind in ("host", "runner")}
    at = log.now()
    worker = {"machine": "m1", "node": "n1", "epoch": 1, "at": at}
    host = HostJoined(incarnation="h1", group=group["host"], pid=11, **worker)
    runner = RunnerRegistered(incarnation="r1", runner="", group=group["runner"], pid=12, **worker)
    await log.append("fleet-default/main", host, runner, actor="system")

    remove = {"command": "rm -rf build"}
    await log.start("report", "writer", "user:ada", "Write the report.")
    await log.turn("report", 1, "First I clean up.", ("run_command", remove), usd="0.02")
    granted = ApprovalGranted(by="lin", digest="d1" * 8, note="the folder is old")
    await log.ask("report", "1.0", "rm -rf build", granted)
    await log.call("report", "1.0", "run_command", "", rule="grant report.1.0.1")
    page = {"path": "docs/report.md", "content": "Sales rose."}
    await log.turn("report", 2, "Now I write.", ("write_file", page), usd="0.03")
    await log.call("report", "2.0", "write_file", "written", "docs/report.md")
    await log.turn("report", 3, "The report is written.", usd="0.01")
    await log.append(
        "session-default/report", SessionCompleted(result="The report is written.", turns=3)
    )

    root = "session-default/report"
    await log.start("report.check", "reviewer", "agent", "Read the report.", root=root)
    await log.turn("report.check", 1, "It is right.", usd="0.005")
    await log.append(
        "session-default/report.check", SessionCompleted(result="It is right.", turns=1)
    )

    await log.start("tidy", "fixer", "user:bob", "Make room on the disk.")
    logs = {"command": "rm -rf /var/log"}
    await log.turn("tidy", 1, "I remove the logs.", ("run_command", logs), usd="0.02")
    await log.ask("tidy", "1.0", "rm -rf /var/log", ApprovalDenied(by="lin", note="never"))
    skipped = ToolSkipped(effect="1.0", reason="lin: never", rule="removals")
    await log.append("session-default/tidy", skipped)
    ended = SessionFailed(kind="denied", message="a person denied it")
    await log.append("session-default/tidy", ended)

    log.moment += timedelta(days=1)
    await log.start("night", "writer", "user:ada", "Mend the site.", model="claude-haiku-4-5")
    sent = MessageSent(text="Only the page of prices, please.")
    await log.append("inbox-default/night", sent, actor="user:ada")
    heard = MessageReceived(inbox_version=2, recorded_at=log.now(), message=sent)
    await log.append("session-default/night", heard)
    both = [
        ("write_file", {"path": f"site/{name}.html", "content": "…"}) for name in ("a", "prices")
    ]
    await log.turn("night", 1, "Two pages need it.", *both, usd="0.004")
    await log.call("night", "1.0", "write_file", "written", "site/a.html")
    await log.call("night", "1.1", "write_file", "written", "site/prices.html")
    await log.turn("night", 2, "Done.", usd="0.002")
    await log.append("session-default/night", SessionCompleted(result="Done.", turns=2))
    gone = RunnerRemoved(incarnation="r1", reason="exit 137", epoch=1, at=at)
    await log.append("fleet-default/main", gone, actor="system")
    await log.store.close()
