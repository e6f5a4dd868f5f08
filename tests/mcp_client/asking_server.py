"""An MCP server whose tool asks a person first: `asking_server.py LEDGER QUESTION-FILE [KEY]`.

With KEY its state outlives the process; without, each process refuses the state of another.
"""

import sys
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

LEDGER, QUESTION = map(Path, sys.argv[1:3])
SECURITY = RequestStateSecurity(keys=[sys.argv[3]]) if len(sys.argv) > 3 else None
app = MCPServer("bank", request_state_security=SECURITY)


class Confirmed(BaseModel):
    """What the person says."""

    sure: bool
    reason: str


def confirm(amount: int) -> Elicit[Confirmed]:
    """Ask whether the money is to go back."""
    return Elicit(QUESTION.read_text().format(amount=amount), Confirmed)


@app.tool()
def refund(amount: int, said: Annotated[Confirmed, Resolve(confirm)]) -> str:
    """Give money back, after a person has confirmed it."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{amount} {said.sure} {said.reason}\n")
    return f"refunded {amount}"


if __name__ == "__main__":
    app.run("stdio")
