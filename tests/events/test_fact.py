import pytest
from pydantic import ValidationError

from cueline.events.codec import FACTS
from cueline.events.session import LimitWarned


@pytest.mark.parametrize("kind", FACTS.values(), ids=lambda kind: kind.__name__)
def test_every_fact_is_frozen_and_refuses_unknown_fields(kind):
    assert (True, "forbid") == (kind.model_config["frozen"], kind.model_config["extra"])


def test_a_fact_that_is_changed_says_so():
    fact = LimitWarned(limit="max_turns", share=0.8, used=8, of=10)

    with pytest.raises(ValidationError, match="frozen"):
        fact.used = 9
