"""Traces of sessions for OpenTelemetry: a projection of the log, made when it is asked for.

This package is imported only where spans are exported: it needs `cueline[otel]`.
"""
