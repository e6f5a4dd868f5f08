"""The typed functions behind the command line and the Python API.

Each request to cueline and each query of a log is one of them. The command line and the Python
API parse their input, call this package, and render the result.
"""
