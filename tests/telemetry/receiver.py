"""A back-end of OpenTelemetry: takes spans by OTLP over HTTP, and keeps what it was sent."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    def __init__(self):
        self.bodies = []
        self.statuses = []
        """What the next requests are answered; then 200."""
        self.before_answer = lambda: None
        self.url = ""

    @property
    def sent(self):
        """All spans in the order of their arrival, also those that came twice."""
        return [
            span
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def services(self):
        """The names of the services that sent spans."""
        return {
            attributes(resource.resource)["service.name"]
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        }

    @property
    def spans(self):
        """The spans as a back-end stores them: each once."""
        return list({(each.trace_id, each.span_id): each for each in self.sent}.values())

    def named(self, name):
        return [each for each in self.spans if each.name == name]

    def total(self, name):
        """Return the sum of an attribute over all spans."""
        return sum(attributes(each).get(name, 0) for each in self.spans)


def attributes(span):
    def value(given):
        kind = given.WhichOneof("value")
        found = getattr(given, kind)
        return [value(each) for each in found.values] if kind == "array_value" else found

    return {each.key: value(each.value) for each in span.attributes}


@contextmanager
def receiving():
    """Run a back-end in a thread."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            if status == 200:
                receiver.bodies.append(body)
            receiver.before_answer()
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
