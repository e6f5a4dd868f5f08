"""Facts made up by hypothesis, from their annotations."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, JsonValue

from cueline.events.codec import Codec, Encoded, Fact
from cueline.events.sanitize import CUT
from cueline.events.store import RecordedEvent

TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=f"\0{CUT}"), max_size=20
)
SMALL = st.integers(0, 2**31)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
KEYS = TEXTS | st.sampled_from(["$blob", "$$blob", "bytes", "type", "blob"])
JSON = st.recursive(
    st.none() | st.booleans() | SMALL | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
PLAIN = {
    str: TEXTS,
    int: SMALL,
    bool: st.booleans(),
    float: st.floats(0, 1e8),
    AwareDatetime: TIMES,
    time: st.times(),
    JsonValue: JSON,
    Decimal: st.decimals(0, 1000, places=6),
    type(None): st.none(),
}
BOUNDED = {"max_retries": st.integers(0, 20), "factor": st.floats(2, 9), "jitter": st.floats(0, 1)}
BOUNDED |= {"max_turns": st.integers(1, 99), "max_output_tokens": st.integers(1, 99)}
BOUNDED |= {"max_depth": st.integers(0, 9), "max_tool_calls_per_turn": st.integers(1, 99)}
BOUNDED |= {"max_active_seconds": st.floats(1, 9), "max_wall_seconds": st.floats(1, 9)}
BOUNDED |= {
    name: st.floats(1, 9) for name in ("approval_seconds", "deadline_seconds", "start_seconds")
}
BOUNDED |= {"max_tokens": st.integers(1, 99), "max_cost": st.decimals("0.01", 99, places=2)}
BOUNDED |= {"approval_seconds": st.floats(1, 9), "votes": st.integers(1, 9)}
BOUNDED |= {"auto_approve_after": st.floats(1, 9), "max_parallel": st.integers(1, 9)}
BOUNDED |= {"context_window": st.integers(1, 99), "compact_at": st.floats(0, 1)}
BOUNDED |= {"max_running": st.integers(1, 9), "every_seconds": st.floats(1, 9)}
WORDS = st.from_regex(r"[a-z]{1,9}", fullmatch=True)
BOUNDED |= {"volume": WORDS, "git_token": st.sampled_from(["", "$TOKEN"])}
BOUNDED |= {"labels": st.dictionaries(WORDS, WORDS, max_size=2)}
BOUNDED |= {
    "resources": st.dictionaries(WORDS, st.floats(0.5, 9), max_size=2),
    "per_node": st.integers(1, 9),
}
BOUNDED |= {"threshold": st.integers(0, 1000), "failure_rate": st.floats(0, 1)}
BOUNDED |= {"memory_mb": st.integers(64, 99), "open_files": st.integers(32, 99)}
BOUNDED |= {"file_mb": st.integers(1, 9), "private_mb": st.integers(1, 9)}
BOUNDED |= {"processes": st.integers(16, 99), "cpu_seconds": st.floats(1, 9)}
BOUNDED |= {"network": st.booleans()}  # a list of hosts is only for some kinds of isolation
PATHS = st.from_regex(r"/[a-z]{1,9}", fullmatch=True)
BOUNDED |= {name: st.lists(PATHS, max_size=2).map(tuple) for name in ("read", "write")}
BOUNDED |= {"cpus": st.floats(0.5, 9), "wait_seconds": st.floats(1, 9)}
BOUNDED |= {"auto_stop_seconds": st.floats(60, 99), "slots": st.integers(1, 9)}
BOUNDED |= {"number": st.integers(1, 9)}
BOUNDED |= {"window_seconds": st.floats(1, 9), "timeout_seconds": st.floats(1, 9)}


def values(annotation: Any) -> st.SearchStrategy:
    """Make values of one annotation."""
    args = get_args(annotation)
    origin = get_origin(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        made = examples(annotation)
    elif is_dataclass(annotation):
        made = st.builds(
            annotation, **{each.name: values(each.type) for each in fields(annotation)}
        )
    elif origin is None:
        made = PLAIN[annotation]
    elif origin is Literal:
        made = st.sampled_from(args)
    elif origin is tuple and args[-1] is Ellipsis:
        made = st.lists(values(args[0]), max_size=2).map(tuple)
    elif origin is tuple:
        made = st.tuples(*map(values, args))
    elif origin is dict:
        made = st.dictionaries(KEYS, values(args[1]), max_size=2)
    elif hasattr(annotation, "__metadata__"):
        made = values(args[0])
    else:
        made = st.one_of(*map(values, args))
    return made


def examples(model: type[BaseModel]) -> st.SearchStrategy:
    """Make instances of a fact, or of a part of one."""
    made = {
        name: BOUNDED[name] if name in BOUNDED else values(field.annotation)
        for name, field in model.model_fields.items()
        if name not in ("type", "agents")  # an agent's agents are agents
    }
    optional = {n: s for n, s in made.items() if not model.model_fields[n].is_required()}
    required = {n: s for n, s in made.items() if n not in optional}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: model(**given))


@pytest.fixture(scope="session")
def facts_of() -> Callable[[type[BaseModel]], st.SearchStrategy]:
    return examples


def record(encoded: Encoded, **changes) -> RecordedEvent:
    draft = encoded.draft
    event = RecordedEvent(
        "session-default/7f3a", 3, 12, draft.type, draft.schema, draft.payload, 1, 2, 1,
        draft.actor, draft.attrs, None, None, 0, 0, b"", b"", b"",
    )  # fmt: skip
    return event._replace(**changes)


@pytest.fixture(scope="session")
def recorded() -> Callable[..., RecordedEvent]:
    """Record a fact: as a codec writes it, but for the fields that are given."""

    def recorded(fact: Fact, codec: Codec | None = None, **changes) -> RecordedEvent:
        return record((codec or Codec()).encode(fact, actor="agent", occurred_us=1), **changes)

    return recorded
