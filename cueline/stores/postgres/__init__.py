"""A log in PostgreSQL, for processes on any number of machines."""
