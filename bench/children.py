"""Measures the CPU time of a child, if one reply starts 100 children or 1,000 children.

The sessions run inline, and everything is durable. Each child answers at once.
With `sync` the parent waits for all children. With `async_callback` the parent gets a message at
the end of each child.
The CPU time of a child includes its share of the parent's time. The model is a script, which does
not read the prompt.
Floor: a child of 1,000 takes at most 1.5 × the CPU time of a child of 100.
"""

import json
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.table import Row, plain
from cueline import Agent, Limits, open_runtime
from cueline.events.start import Mode
from cueline.runtime.loop import run

FEW, MANY = 100, 1_000
ROUNDS = 3
MOST_RATIO = 1.5
MODES: tuple[Mode, ...] = ("sync", "async_callback")


def lead(folder: Path, children: int, mode: Mode) -> Agent:
    """Return an agent whose first reply starts *children* children."""
    said = '[[reply]]\ntext = "Done."\n'
    helps, leads = folder / "helps.toml", folder / "leads.toml"
    helps.write_text(said)
    calls = [
        f'{{ name = "delegate", arguments = {{ agent = "helper", goal = "{n}", '
        f"mode = {json.dumps(mode)} }} }}"
        for n in range(children)
    ]
    leads.write_text(f'[[reply]]\ntext = "Begin."\ncalls = [{", ".join(calls)}]\n{said * children}')
    helper = Agent(name="helper", provider="scripted", model=str(helps))
    limits = Limits(
        max_descendants=children, max_turns=2 * children, max_tool_calls_per_turn=children
    )
    return Agent(name="lead", provider="scripted", model=str(leads), agents=[helper], limits=limits)


async def delegated(folder: Path, children: int, mode: Mode) -> float:
    """Start *children* children and wait for their ends; return the CPU seconds of one child."""
    async with open_runtime(folder / "log.db", on="inline") as runtime:
        began = time.process_time()
        session = await runtime.start(lead(folder, children, mode), "Begin.")
        result = await session.result()
        took = time.process_time() - began
        assert result.status == "completed", result
        return took / children


def one(children: int, mode: Mode) -> float:
    """Return the CPU seconds of one child, measured once in a new log."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        return run(delegated(Path(folder), children, mode))


def measure() -> list[Row]:
    """Return the rows of this bench."""
    rows = []
    for mode in MODES:
        rounds = [(one(FEW, mode), one(MANY, mode)) for _ in range(ROUNDS)]
        few, many = (median(taken) for taken in zip(*rounds, strict=True))
        rows += [
            Row(f"a child of {FEW}, {mode}", 1000 * few, "ms of CPU"),
            Row(
                f"a child of {MANY:,}, {mode}",
                1000 * many,
                "ms of CPU",
                f"≤ {MOST_RATIO} ×",
                median(b / a for a, b in rounds),
                f"one of {FEW}",
            ),
        ]
    return rows


if __name__ == "__main__":
    print(plain(measure()))
