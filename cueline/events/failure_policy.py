"""How failures of an agent's calls are handled: retries and circuit breakers."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from cueline.events.number import LASTING, TIME, Number, Seconds, Time, Whole
from cueline.events.part import Part

Preset = Literal["standard", "exact", "short"]
"""The name of a retry policy."""


class RetryPolicy(Part):
    """How a repeatable effect is retried; the name of a preset is accepted.

    The n-th retry waits min(cap, base * factor**(n-1)), spread by +/- jitter;
    the spread is a hash of key and attempt (I10).
    """

    max_retries: Whole = Field(default=3, ge=0, le=20)
    """The number of retries; the first attempt is none of them."""
    base_seconds: Seconds = Field(default=1.0, ge=0)
    factor: Number = Field(default=2.0, ge=1)
    cap_seconds: Seconds = Field(default=60.0, ge=0)
    jitter: Number = Field(default=0.25, ge=0, le=1)
    deadline_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """No retry begins later than this after the first failure; None: no such limit."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        if given not in RETRY_PRESETS:
            raise ValueError(f"no preset {given!r}; presets are {', '.join(RETRY_PRESETS)}")
        return RETRY_PRESETS[given]

    @classmethod
    def named(cls, preset: str) -> Self:
        """Return the policy of a preset.

        Raises:
            ValueError: there is no such preset; the message lists the presets.
        """
        return cls.model_validate(preset)


RETRY_PRESETS: Final[dict[Preset, dict[str, float]]] = {
    "standard": {"max_retries": 3, "base_seconds": 1, "cap_seconds": 30},
    "exact": {"max_retries": 3, "base_seconds": 2, "jitter": 0},
    "short": {"max_retries": 2, "base_seconds": 1},
}
"""Waits of 1, 2, 4 s; of exactly 2, 4, 8 s; of 1, 2 s (C2)."""


class BreakerPolicy(Part):
    """When the circuit breaker of a failing dependency opens."""

    threshold: Whole = Field(default=5, ge=0, le=1000)
    """Transient failures within the window that open the breaker; 0: it never opens."""
    window_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    timeout_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    """Time from opening to the first probe; doubled after each failed probe."""
    failure_rate: Number = Field(default=0.0, ge=0, le=1)
    """The failed share of the calls in the window that is needed, too."""
    min_calls: Whole = Field(default=0, ge=0)
    """The number of calls in the window that is needed, too."""
    on_open: Literal["wait", "fallback", "pause"] = "wait"
    """While it is open: wait, go on without or with a fallback, or ask a person."""
