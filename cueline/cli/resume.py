"""`cueline resume`: take a session over, and really go on with it."""

from typing import TYPE_CHECKING

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import (
    ACCEPT,
    DEFAULT_LOG,
    AcceptOption,
    AddressOption,
    DetachOption,
    InlineOption,
    JsonOption,
    LogOption,
    PlainOption,
    SessionArgument,
    WithoutSecretOption,
)
from cueline.environment import who

if TYPE_CHECKING:
    from cueline.cli.starting import Wish
    from cueline.events.agent import ToolSpec

_HELP = """Go on with a session that crashed, was paused, or was interrupted.

It goes on from what is in the log, with the agent as it was recorded, and is
shown live. A session that has ended is refused, and so is one that a living
process drives, unless it is paused: then that process is told to go on.

\b
Examples:
  cueline resume 7f3a
  cueline resume 7f3a --inline
  cueline resume 7f3a --without-secret SHOP_TOKEN
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume", help=_HELP, short_help="Go on with a session, and watch it.")(resume)


def resume(
    ctx: typer.Context,
    session: SessionArgument,
    *,
    inline: InlineOption = False,
    detach: DetachOption = False,
    address: AddressOption = None,
    without_secret: WithoutSecretOption = None,
    accept_changed_tools: AcceptOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Go on with a session."""
    from cueline.cli.starting import wish_of

    wish = wish_of(
        ctx,
        log,
        session,
        inline=inline,
        detach=detach,
        address=address,
        as_json=as_json,
        plain=plain,
        without_secrets=without_secret,
    )
    raise typer.Exit(opened.run(_resume(wish, accept_changed_tools=accept_changed_tools)))


async def _resume(wish: "Wish", *, accept_changed_tools: bool) -> Exit:
    from cueline.actors.owner import check_resume, owner_of
    from cueline.cli.addressing import client_for
    from cueline.cli.running import is_up, resuming
    from cueline.cli.starting import carry_on, check_channel
    from cueline.client.current import current_session
    from cueline.deciders.session.unread import waived_secrets
    from cueline.deciders.session.wait import rests
    from cueline.events.inbox import ResumeAsked
    from cueline.events.stream import shown
    from cueline.preflight import check_resumed
    from cueline.secret import waiver

    async with client_for(wish.log, wish.id) as (client, stream):
        log = client.log
        to = await current_session(log, stream)
        owner = await owner_of(log.store, log.board, stream, log.clock.now())
        check_resume(to.state, to.unread, owner)
        said = waiver(to.agent, wish.without_secrets, who())
        tools: tuple[ToolSpec, ...] = ()
        if not to.stopping:  # nothing starts in one that ends, and nobody is asked
            known = waived_secrets(to.state, [*to.unread, said])
            way = resuming(wish.log, shown(stream), inline=wish.inline)
            tools = check_resumed(
                to.agent,
                wish.log,
                waived=known,
                accept_changed_tools=accept_changed_tools,
                accept_with=f"{way} {ACCEPT}",
            )
            if to.attached:  # any other was started where people answer from elsewhere (D36)
                check_channel(to.agent, wish)
        # A question that is not over is answered, not gone on after.
        rested = rests(to.state, log.clock.now())
        asks = to.held or (to.state.waiting is not None and not rested)
        asks = asks and not to.stopping  # it is driven to its end, and nothing else
        # An `up` has set it aside, or leaves it alone as it was found: it waits for a word.
        left = owner is None and not wish.inline and is_up(wish.log)

        async def record_it() -> None:
            if said is not None:
                await log.post(stream, said, to.agent, by=f"user:{who()}")
            if asks or left or tools:
                resume = ResumeAsked(tools=tools)
                await log.post(stream, resume, to.agent, by=f"user:{who()}")

        return await carry_on(log, stream, wish, record_it, show_past=False)
