"""What a tool is called, by its source alone."""

import pytest

from cueline.tools.target import name_in_source

PACKAGE = "raise SystemExit('the code of a tool ran')\n"
MODULE = f"""
{PACKAGE}
@tool
def plain(): ...
@tool(name="other", read_only=True)
async def renamed(): ...
@tool(**{{"name": "hidden"}})
def computed(): ...
"""


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("boxed.inner:plain", "plain"),
        ("boxed.inner:renamed", "other"),
        ("boxed.inner:computed", None),
        ("boxed.inner:none", None),
        ("boxed.lost:plain", None),
        ("lost.py:plain", None),
        ("boxed/inner.py:plain", "plain"),
    ],
)
def test_the_name_of_a_tool_is_read_and_nothing_runs(tmp_path, monkeypatch, target, name):
    (tmp_path / "boxed").mkdir()
    (tmp_path / "boxed/__init__.py").write_text(PACKAGE)
    (tmp_path / "boxed/inner.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    assert name == name_in_source(target)
