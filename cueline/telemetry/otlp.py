"""Sends spans to a back-end of OpenTelemetry by OTLP over HTTP."""

import logging
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from cueline.errors import TelemetryError

_NO_ANSWER: Final = "timeout, max retries or shutdown"
"""In what the SDK says if it could not reach the back-end, or got no answer in time."""


class OtlpExporter(OTLPSpanExporter):
    """The exporter of the SDK, which raises with the reason of a failure instead of logging it.

    It reads the standard variables, such as `OTEL_EXPORTER_OTLP_HEADERS`, which may have a key.
    """

    def __init__(self, endpoint: str) -> None:
        """Prepare to send to the URL *endpoint*."""
        super().__init__(endpoint=endpoint)
        self._url = endpoint
        self._said = _LastRecord()
        logger = logging.getLogger(OTLPSpanExporter.__module__)
        logger.addHandler(self._said)
        logger.propagate = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send *spans*, several times if the back-end is busy.

        Raises:
            TelemetryError: the back-end did not accept them.
        """
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            said = self._said.text or "it did not accept the spans"
            if _NO_ANSWER in said:
                said = "it cannot be reached, or is too busy; see that it runs, and try again"
            raise TelemetryError(self._url, said)
        return result


class _LastRecord(logging.Handler):
    """Keeps the text of the last warning or error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()
