"""One taxonomy of failures (C3, 004-015)."""

from cueline.events.codes import BY_STATUS, OURS, PERMANENT, TRANSIENT


def test_a_kind_is_transient_or_permanent_or_of_our_own_making():
    assert not TRANSIENT & PERMANENT
    assert not OURS & (TRANSIENT | PERMANENT)


# D37: not every failure is worth another attempt.
def test_an_unknown_error_code_is_permanent():
    assert "unknown" in PERMANENT


def test_the_statuses_that_pass_are_those_of_every_source():
    passing = {status for status, kind in BY_STATUS.items() if kind in TRANSIENT}

    assert {408, 429, 500, 502, 503, 504, 529} == passing
