"""No secret that cueline knows is ever recorded, wherever it comes from (I11, 002-013)."""

import base64
from urllib.parse import quote

import cueline

CANARY = "c4nary/s3cr3t+value"
SCRIPT = f"""
reply = [
    {{ text = "Hm.", calls = [{{ name = "leak", arguments = {{ text = "{CANARY}" }} }}] }},
    {{ text = "Done with {CANARY}." }},
]
"""


@cueline.tool(read_only=True)
async def leak(text: str) -> str:
    """Repeat what must not be repeated."""
    whole = f"{CANARY} {text} {base64.b64encode(CANARY.encode()).decode()} {quote(CANARY, safe='')}"
    return f"{whole} {'x' * 20_000} {CANARY} {'y' * 60_000}"


async def test_a_secret_is_in_no_file_of_the_log(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", CANARY)
    agent = cueline.Agent(
        name="leaker",
        provider="scripted",
        model="leak",
        parameters={"script": SCRIPT},
        tools=[leak],
        secrets=("SHOP_PASSWORD",),
    )

    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as runtime:
        session = await runtime.start(agent, f"Use {CANARY}.", labels={"password": CANARY})
        await session.result()
        await session.send(f"Forget {CANARY}.")

    forms = [CANARY, base64.b64encode(CANARY.encode()).decode(), quote(CANARY, safe="")]
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert [] == [name for name, held in files.items() for f in forms if f.encode() in held]
    assert b"[redacted]" in b"".join(files.values())
