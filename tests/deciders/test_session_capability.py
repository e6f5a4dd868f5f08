"""What a model lacks: the log says so once."""

from cueline.events.agent import Fallback
from cueline.events.session import (
    CapabilityDegraded,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    ToolReturned,
)
from cueline.testing.given import given
from tests.session_example import agent, asking, failing, returned, running, saying, started

B = Fallback(provider="scripted", model="b")
TOOLS = CapabilityDegraded(capability="tools", provider="scripted", model="m")


def replied(*names, lacking=("tools",), **fields):
    return saying(*names, **fields).model_copy(update={"lacking": lacking})


# 000-030
def test_what_a_model_lacks_is_recorded_after_its_reply():
    past = given().when(started(), asking(), replied("look"))

    past.then(ModelReplied, CapabilityDegraded)
    assert TOOLS == past.facts[1]


def test_it_is_recorded_once_for_each_model_and_capability():
    past = given().when(started(), asking(), replied("look"), running("1.0", "look"))
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)

    past.when(asking(turn=2), replied(turn=2, lacking=("tools", "images")))

    past.then(ModelReplied, CapabilityDegraded, SessionCompleted)
    assert "images" == past.facts[1].capability


def test_another_model_is_recorded_by_its_own_name():
    spec = agent(max_retries=0).model_copy(update={"fallback": (B,)})
    past = given().when(started(spec), asking(), failing("overloaded"))

    past.when(asking(attempt=2), replied("look", attempt=2)).then(ModelReplied, CapabilityDegraded)

    assert "b" == past.facts[1].model
