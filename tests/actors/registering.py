"""Registers a runner that offers a blueprint: `LOG INCARNATION NAME`; says what came of it."""

import asyncio
import os
import sys

from cueline.actors.fleet_log import FleetLog
from cueline.errors import BlueprintConflictError
from cueline.events.agent import AgentSpec
from cueline.events.fleet import RunnerRegistered, WorkerGroup
from cueline.runtime.open_log import open_log


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def register(url, incarnation, name):
    async with open_log(url) as log:
        agent = AgentSpec(name=name, provider="scripted", model="script")
        registered = RunnerRegistered(
            incarnation=incarnation,
            blueprints=(agent,),
            group=WorkerGroup(kind="runner"),
            machine="m1",
            node="n1",
            pid=os.getpid(),
            epoch=1,
            at=log.clock.now(),
        )
        say("ready")
        sys.stdin.readline()
        try:
            await FleetLog(log.journal()).record([registered], "system")
        except BlueprintConflictError as error:
            say(error)
        else:
            say("registered")


if __name__ == "__main__":
    asyncio.run(register(*sys.argv[1:]))
