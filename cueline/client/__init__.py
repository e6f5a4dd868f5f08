"""The requests and questions of people and programs to cueline, typed and declared once.

The command line and the Python API parse, call this room, and render the results.
"""
