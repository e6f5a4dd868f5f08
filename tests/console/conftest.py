import pytest

from cueline.console.event_renderer import EventRenderer


@pytest.fixture
def telling():
    return EventRenderer()
