"""What the tests do to a log that no process of cueline does."""

from cueline.sqlite_library import sqlite_library


def change(path, sql, *values):
    """Change the log at *path* behind its back."""
    db = sqlite_library().connect(path)
    for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute(sql, values)
    db.commit()
    db.close()


def swap(path, type_, was, by):
    """Change a word of the events of that type."""
    swapped = "CAST(replace(CAST(payload AS TEXT), ?, ?) AS BLOB)"
    change(path, f"UPDATE events SET payload = {swapped} WHERE type = ?", was, by, type_)
