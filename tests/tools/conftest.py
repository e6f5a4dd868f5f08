"""What the tests of the tools share."""

import pytest

from cueline.tools.tool import ToolContext


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("hidden")
    return folder


@pytest.fixture
def use(workspace):
    def call(tool, **arguments):
        context = ToolContext(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            folder=workspace,
        )
        return tool.run(arguments, context)

    return call
