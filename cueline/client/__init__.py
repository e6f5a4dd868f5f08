"""What a person or a program may ask of cueline, typed, each wish once.

The command line and the Python API parse, call this room, and render what it returns.
"""
