"""The shape that all rules share."""

from cueline.deciders.decider import Decider

SUM = Decider(0, lambda amount, total: [amount] if amount else [], lambda total, fact: total + fact)


def test_a_replay_folds_from_the_beginning_or_from_a_state():
    assert 6 == SUM.replay([1, 2, 3])
    assert 16 == SUM.replay([1, 2, 3], 10)
