"""What happened: the facts, their names, their bytes, and the log's port."""
