"""Figures of the actors for the metrics of Ray, which its nodes export to Prometheus.

They are of one process each, and end with it; `/metrics` has those of the log. Without
`ray[default]` they go nowhere. Ray puts `ray_` before each name.
"""

from functools import cache

from ray.util.metrics import Counter, Gauge


@cache
def host_sessions() -> Gauge:
    """Return the gauge of a host's sessions."""
    return Gauge("cueline_host_sessions", "Sessions that the host drives.")


@cache
def host_troubles() -> Counter:
    """Return the counter of the errors that a host reports."""
    return Counter("cueline_host_troubles", "Errors of sessions that the host cannot run.")


@cache
def runner_calls() -> Gauge:
    """Return the gauge of a runner's calls."""
    about = "Calls that the runner runs, or whose outcome may not be recorded yet."
    return Gauge("cueline_runner_calls", about)


@cache
def waiting_calls() -> Gauge:
    """Return the gauge of the calls without a runner."""
    return Gauge("cueline_waiting_calls", "Calls that wait for a runner with what they need.")
