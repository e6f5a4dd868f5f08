"""The read models beside the log, which can be deleted and rebuilt at any time."""
