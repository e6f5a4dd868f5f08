"""Which host has which session, by what hosts report."""

from collections import Counter

from cueline.actors import assignments
from cueline.actors.assignments import Assignments, HostReport


def known(**places):
    """Return the assignments of hosts with so many places each."""
    sessions = Assignments()
    sessions.keep(places)
    for host, count in places.items():
        report(sessions, host, count)
    return sessions


def report(sessions, host, places=100, *, ended=(), again=(), number=1, count=None, **fields):
    has = Counter(sessions._host_of.values())[host] - len({*ended, *again})
    over = {**dict.fromkeys(ended, False), **dict.fromkeys(again, True)}
    count = has if count is None else count
    sessions.take(host, HostReport(number, over, count, places, **fields))


def assign(sessions, *streams):
    return sessions.assign((stream, None) for stream in streams)


def numbered(count):
    return [f"s{number}" for number in range(count)]


def test_sessions_go_to_the_host_with_the_fewest():
    sessions = known(a=100, b=100, c=100)
    assign(sessions, *numbered(10))
    report(sessions, "b", ended=sessions._hosts["b"].sessions)

    batches = assign(sessions, "x", "y", "z")

    assert {"b": ["x", "y", "z"]} == batches


def test_an_active_session_stays_with_its_host():
    sessions = known(a=100, b=100)
    assign(sessions, *numbered(10))
    (host,) = assign(sessions, "s3")

    assert {host: ["s3"]} == assign(sessions, "s3")
    assert 10 == len(sessions.active)


def test_the_sessions_of_a_lost_host_wait_in_the_order_in_which_it_got_them():
    sessions = known(a=100)
    assign(sessions, *numbered(20))
    report(sessions, "a", ended=["s3"])
    assign(sessions, "s3")

    sessions.keep([])

    came = [*numbered(20), "s3"]
    came.remove("s3")
    assert came == list(sessions.unplaced)


def test_a_host_that_nobody_has_heard_of_gets_nothing():
    sessions = known(a=1)
    sessions.keep(["a", "new"])

    assert {"a": ["s0"]} == assign(sessions, *numbered(2))
    assert (["new"], ["s1"]) == (sessions.unheard, list(sessions.unplaced))
    assert sessions.are_hosts_full


def test_a_session_that_finds_no_place_gets_one_as_soon_as_there_is_one():
    sessions = known(a=2)
    assign(sessions, *numbered(3))
    assert sessions.are_hosts_full

    report(sessions, "a", 2, ended=["s0"])

    assert {"a": ["s2"]} == assign(sessions, *sessions.unplaced)
    assert not sessions.unplaced


def test_a_host_that_refuses_gets_nothing_before_its_next_report():
    sessions = known(a=100, b=100)
    batches = assign(sessions, *numbered(4))

    sessions.refuse("a", batches["a"])

    assert {"b": batches["a"]} == assign(sessions, *batches["a"])
    report(sessions, "a")
    assert {"a": ["x"]} == assign(sessions, "x")


def test_a_refusal_that_comes_late_takes_no_session_from_another_host():
    sessions = known(a=100, b=100)
    assign(sessions, "s0", "s1")
    sessions.refuse("a", ["s0"])
    assign(sessions, "s0")

    sessions.refuse("a", ["s0"])

    assert {"b": ["s0", "s1"]} == assign(sessions, "s0", "s1")


def test_a_session_that_ended_with_work_left_needs_another_host():
    sessions = known(a=100)
    assign(sessions, *numbered(3))

    report(sessions, "a", ended=["s0"], again=["s1"])

    assert (["s1"], ["s2"]) == (list(sessions.unplaced), list(sessions.active))


def test_the_sessions_of_a_host_that_left_need_another():
    sessions = known(a=100, b=100)
    batches = assign(sessions, *numbered(4))

    sessions.keep(["b"])

    assert batches["a"] == sorted(sessions.unplaced)
    assert {"b": batches["a"]} == assign(sessions, *batches["a"])


def test_what_a_silent_former_host_may_still_drive_is_kept_in_mind():
    sessions = known(a=100, b=100)
    assign(sessions, "s0")
    sessions.keep(["b"])

    sessions.leave_to("a", "s0")
    assert ["s0"] == list(sessions.unplaced)

    sessions.leave_to("somebody else", "s0")
    assert not sessions.unplaced


def test_a_host_that_does_not_answer_in_time_gets_what_no_other_takes():
    # It may be busy: a session that waits for its answer waits less than one without a host.
    sessions = known(a=100, b=1)
    sessions.take("a", None)

    assert {"b": ["s0"], "a": ["s1"]} == assign(sessions, "s0", "s1")
    assert {} == sessions.surplus()
    report(sessions, "a", active=["s1"])
    assert {"a": ["s2"]} == assign(sessions, "s2")


def test_a_host_that_did_not_answer_names_all_its_sessions_later():
    sessions = known(a=100, b=100)
    batches = assign(sessions, *numbered(4))

    sessions.take("a", None)

    assert None is sessions.last_report("a")
    report(sessions, "a", number=7, active=[batches["a"][0], "z"], count=2)
    assert (7, [batches["a"][1]]) == (sessions.last_report("a"), list(sessions.unplaced))
    assert {"a": ["z"]} == assign(sessions, "z")


def test_a_host_whose_number_of_sessions_is_another_names_them_all():
    # An order was lost on the way, or came late.
    sessions = known(a=100)
    assign(sessions, "s0")

    report(sessions, "a", count=2)

    assert None is sessions.last_report("a")


def test_a_session_is_with_the_host_that_named_it_last():
    sessions = known(a=100, b=100)
    assign(sessions, "s0")

    report(sessions, "b", active=["s0"], count=1)

    assert {"b": ["s0"]} == assign(sessions, "s0")
    report(sessions, "a", ended=["s0"], count=0)
    assert ["s0"] == list(sessions.active)


def test_a_report_of_a_host_that_left_changes_nothing():
    sessions = known(a=100)

    sessions.take("b", HostReport(1, {}, 0, 10))

    assert (None, []) == (sessions.last_report("b"), sessions.unheard)


def test_a_session_that_was_set_aside_goes_to_the_host_that_knows_it():
    sessions = known(a=100, b=100)
    assign(sessions, "s0")

    assert {"a": ["s1"]} == sessions.assign([("s1", "a")])
    assert {"b": ["s2"]} == sessions.assign([("s2", "one that left")])


def test_hosts_are_balanced_by_what_they_have():
    sessions = known(a=100)
    assign(sessions, *numbered(30))
    sessions.keep(["a", "b"])
    report(sessions, "b")

    assert {"a": 15} == sessions.surplus()
    report(sessions, "a", leaving=15)
    assert {} == sessions.surplus()


def test_only_so_many_sessions_without_a_host_are_kept_by_name(monkeypatch):
    monkeypatch.setattr(assignments, "UNPLACED", 2)
    sessions = known(a=1)

    assign(sessions, *numbered(9))

    assert ["s1", "s2"] == list(sessions.unplaced)


def test_the_queue_of_hosts_does_not_grow_with_the_changes():
    sessions = known(a=100, b=100)
    for number in range(3000):
        (host,) = assign(sessions, f"s{number}")
        report(sessions, host, ended=[f"s{number}"])

    assert len(sessions._queue) < 1100
