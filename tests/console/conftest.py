import pytest

from cueline.console.telling import Telling


@pytest.fixture
def telling():
    return Telling()
