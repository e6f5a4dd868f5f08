"""Takes the pictures of the pages, in Chromium: `python docs/pictures/pages.py`."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import Page, async_playwright

import cueline
from cueline.gateway.server import Address, serve

HERE = Path(__file__).parent
TOKEN = "a-token-for-the-pictures"
SIZES = {"wide": (1280, 800), "phone": (390, 780)}
PAGES = {"sessions": "/", "session": "/sessions/party", "approval": "/approvals/party.2.0.1"}


async def work(log: Path, agent: Path) -> None:
    """Run a few sessions of the librarian; the last one asks."""
    async with cueline.open_runtime(log, on="inline") as runtime:
        for name in ("spring", "summer"):
            session = await runtime.start(agent, f"Bring the list of {name} up to date", id=name)
            await session.result()
            (asked,) = await runtime.pending()
            await session.approve(asked.id, note="thank you")
            await session.result()
            shutil.copy(HERE / "party/notes/guests.md", agent.parent / "notes")
        await (await runtime.start(agent, "Bring the guest list up to date", id="party")).result()


async def take(page: Page, name: str) -> None:
    """Store what the page shows."""
    await page.wait_for_timeout(300)
    await page.screenshot(path=HERE / f"page-{name}.png")


async def main() -> None:
    """Serve the sessions, and take each page in each size."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "party", folder, dirs_exist_ok=True)
        log = Path(folder) / "log.db"
        await work(log, Path(folder) / "agent.toml")
        async with cueline.open_runtime(log, on="inline") as runtime, async_playwright() as driver:
            url = asyncio.get_running_loop().create_future()
            address = Address(port=0)
            serving = asyncio.create_task(
                serve(runtime, address, token=TOKEN, ready=url.set_result, say=print)
            )
            browser = await driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for size, (width, height) in SIZES.items():
                context = await browser.new_context(
                    base_url=await url,
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if size == "phone" else "light",
                    extra_http_headers={"Authorization": f"Bearer {TOKEN}"},
                )
                page = await context.new_page()
                for name, path in PAGES.items():
                    if (size, name) not in {("wide", "approval"), ("phone", "sessions")}:
                        await page.goto(path)
                        await take(page, f"{name}-{size}")
            await browser.close()
            serving.cancel()
            await asyncio.wait((serving,))


if __name__ == "__main__":
    asyncio.run(main())
