"""Restate: a service with the call in `ctx.run`, beside the server that `kill` starts."""

import asyncio
import sys
from pathlib import Path

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bench.peers.kill_tool import pay

FOLDER, PORT = Path(sys.argv[1]), sys.argv[3]
agent = restate.Service("agent")


@agent.handler()
async def run(ctx: restate.Context, _: str) -> str:
    """Pay."""
    return await ctx.run_typed("pay", lambda: pay(FOLDER))


config = Config()
config.bind = [f"127.0.0.1:{PORT}"]
asyncio.run(serve(restate.app([agent]), config))
