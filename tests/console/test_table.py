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


def test_a_cell_that_does_not_fit_is_folded_and_none_is_cut(capsys, monkeypatch):
    assert [
        "STREAM         TYPE     ACTOR",
        "session one@1  Session  user:ada",
        "               Started",
        "session one@2  Idle",
    ] == told(capsys, monkeypatch, 32)


def test_words_stay_whole_where_they_fit(capsys, monkeypatch):
    rows = told(capsys, monkeypatch, 20, ("id", "goal"), [("one", "tidy the old notes")])

    assert ["ID   GOAL", "one  tidy the old", "     notes"] == rows


def test_a_short_cell_is_not_folded_for_a_long_one(capsys, monkeypatch):
    rows = [("one", "interrupted", "tidy the old notes")]

    assert [
        "ID   STATUS       GOAL",
        "one  interrupted  tidy the",
        "                  old notes",
    ] == told(capsys, monkeypatch, 27, ("id", "status", "goal"), rows)


def test_nothing_is_folded_where_nobody_has_a_screen(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(("id", "goal"), [("one", "long " * 100)])

    assert f"one  {'long ' * 100}".rstrip() == capsys.readouterr().out.splitlines()[1]


def test_a_table_in_a_pipe_has_the_columns_of_one_on_a_wide_screen(capsys, monkeypatch):
    rows = [("one", "日本語 and more", ""), ("two and three", "é", "end\nof it")]
    monkeypatch.setenv("COLUMNS", "200")
    print_table(("id", "goal", "status"), rows)
    wide = capsys.readouterr().out

    monkeypatch.delenv("COLUMNS")
    print_table(("id", "goal", "status"), rows)

    assert wide == capsys.readouterr().out
