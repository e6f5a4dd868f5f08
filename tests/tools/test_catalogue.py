"""The tools that come with cueline, and what is declared of each."""

import pytest

from cueline.tools.catalogue import builtin_tools
from cueline.tools.tool import load

# Declared of doing it twice, and whether a person has to allow it: D6, 000-024.
CLASSIFIED = {
    "read_file": ("read_only", False),
    "list_files": ("read_only", False),
    "search_files": ("read_only", False),
    "write_file": ("idempotent", False),
    "edit_file": ("nothing", False),
    "apply_patch": ("nothing", False),
    "delete_file": ("idempotent", True),
    "run_command": ("nothing", True),
    "ask_user": ("read_only", False),
    "http_get": ("read_only", True),
    "http_request": ("nothing", True),
    "todo": ("read_only", False),
}
PATCH = "--- a.txt\n+++ a.txt\n@@ -1 +1,2 @@\n+x\n text\n\\ No newline at end of file\n"
EXAMPLES = {
    "read_file": {"path": "a.txt"},
    "list_files": {"recursive": True},
    "search_files": {"pattern": "text"},
    "write_file": {"path": "a.txt", "content": "new"},
    "edit_file": {"path": "a.txt", "old": "text", "new": "other"},
    "apply_patch": {"paths": ["a.txt"], "patch": PATCH},
    "delete_file": {"path": "a.txt"},
    "run_command": {"command": "echo new > a.txt"},
}


def test_every_tool_is_classified():
    tools = builtin_tools().values()

    assert CLASSIFIED == {tool.name: (tool.declared, tool.sensitive) for tool in tools}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_tool_is_read_only_if_and_only_if_it_changes_nothing(name, use, workspace):
    (workspace / "a.txt").write_text("text")
    before = files(workspace)

    use(builtin_tools()[name], **EXAMPLES[name])

    assert (files(workspace) == before) == (builtin_tools()[name].declared == "read_only")


@pytest.mark.parametrize("name", [n for n in EXAMPLES if CLASSIFIED[n][0] == "idempotent"])
def test_an_idempotent_tool_done_twice_is_done_once(name, use, workspace):
    use(builtin_tools()[name], **EXAMPLES[name])
    once = files(workspace)

    use(builtin_tools()[name], **EXAMPLES[name])

    assert once == files(workspace)


def files(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("name", CLASSIFIED)
def test_each_says_what_it_does_and_is_found_again(name):
    tool = builtin_tools()[name]

    assert len(tool.spec().description) > 20
    assert tool is load(tool.spec().target)
    assert tool.needs_workspace == (name in EXAMPLES)
