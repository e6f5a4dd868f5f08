import pytest

from cueline.console.table import bar


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, ""), (0.001, "▏"), (0.25, "█"), (0.3, "█▎"), (0.5, "██"), (1, "████")],
)
def test_a_bar_is_as_long_as_its_share_and_seen_if_there_is_any(share, drawn):
    assert drawn == bar(share, 4)
