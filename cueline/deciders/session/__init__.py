"""The rules of one session: its statuses, and the changes between them.

`created → running ⇄ idle`; `created | running | idle | waiting → waiting |
stopping`; `waiting → running`; `stopping → stopped`; terminal `completed`,
`failed`, `stopped`.
"""

from cueline.deciders.decider import Decider
from cueline.deciders.session.decide import command_of, decide, step
from cueline.deciders.session.derived_events import derived_events
from cueline.deciders.session.due import due
from cueline.deciders.session.evolve import evolve
from cueline.deciders.session.judging import order_digest
from cueline.deciders.session.permission import allowing_rule
from cueline.deciders.session.state import SessionState, session_of
from cueline.deciders.session.wait import rests, wake_at
from cueline.events.session import SessionEvent
from cueline.events.status import DRIVEN, TERMINAL, Status

SESSION: Decider[SessionEvent, SessionState, SessionEvent] = Decider(SessionState(), decide, evolve)
