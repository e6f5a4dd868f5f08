"""cueline: one call of a tool that declares nothing."""

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

import cueline
from bench.peers.kill_tool import pay as act

FOLDER = Path(sys.argv[1])
SCRIPT = '[[reply]]\ncalls = [{ name = "pay" }]\n\n[[reply]]\ntext = "Done."\n'


@cueline.tool
async def pay() -> str:
    """Pay."""
    return await asyncio.to_thread(act, FOLDER)


AGENT = cueline.Agent(
    name="payer",
    provider="scripted",
    model="m",
    parameters={"script": SCRIPT},
    tools=[pay],
    policy=cueline.Policy(in_doubt="tell"),
)


async def main() -> None:
    """Begin the session, or resume it; print what the model was told of the call."""
    async with cueline.open_runtime(FOLDER / "log.db", on="inline") as runtime:
        if sys.argv[2] == "begin":
            session = await runtime.start(AGENT, "Pay.", id="one")
        else:
            session = await runtime.resume("one")
        await session.result()
        told = [each for each in (await runtime.export("one")).messages if each["role"] == "tool"]
        print(version("cueline"), f"the model is told: {told[0]['text']}", sep="\t")


if __name__ == "__main__":  # its runner imports the tool from here
    asyncio.run(main())
