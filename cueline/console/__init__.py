"""Renders sessions, tables and questions for a terminal."""
