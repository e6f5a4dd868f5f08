"""Tables on a screen that may be too narrow for them."""

from cueline.console.table import print_table

HEAD = ("stream", "type", "actor")
ROWS = [("session one@1", "SessionStarted", "user:ada"), ("session one@2", "Idle", "")]


def told(capsys, monkeypatch, columns, head=HEAD, rows=ROWS):
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(head, rows)
    return capsys.readouterr().out.splitlines()


def test_what_fits_stands_side_by_side(capsys, monkeypatch):
    head, row, _ = told(capsys, monkeypatch, 80)

    assert "STREAM         TYPE            ACTOR" == head
    assert "session one@1  SessionStarted  user:ada" == row


def test_columns_that_do_not_fit_go_beneath_and_none_is_cut(capsys, monkeypatch):
    assert [
        "STREAM         TYPE",
        "    ACTOR",
        "session one@1  SessionStarted",
        "    user:ada",
        "session one@2  Idle",
    ] == told(capsys, monkeypatch, 32)


def test_only_a_long_last_column_is_cut_with_a_sign(capsys, monkeypatch):
    _, row = told(capsys, monkeypatch, 40, ("id", "goal"), [("one", "long " * 20)])

    assert ("one  long", "…", 40) == (row[:9], row[-1], len(row))
