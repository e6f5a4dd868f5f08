"""What the tests of isolation share."""

import pytest

from cueline.tools.tool import ToolContext


@pytest.fixture
def context(tmp_path):
    def make(isolation):
        return ToolContext(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            folder=tmp_path,
            isolation=isolation,
        )

    return make
