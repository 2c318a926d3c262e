"""A small HTTP server that answers as Phoenix, MLflow, Langfuse and a receiver of OTLP document it.

`tests/live` holds against real servers what it does.
"""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord


@dataclass
class Server:
    """What the server was asked, what it holds, and how it misbehaves.

    Attributes:
        url: its address.
        requests: method and path of each request, in order.
        authorizations: what each said of who asks.
        held: scores by whatever tells them apart there.
        events: events it received.
        unknown: ids of traces and sessions that it does not have.
        faults: answers it gives before it does its work, (status, headers, body) each.
        lost: whether the next POST is done, and answered as if it was not.
        broken: whether it fails with every write.
        left_out: events of each request that it says to leave out.
    """

    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    held: dict[Any, Any] = field(default_factory=dict)
    events: list[LogRecord] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    faults: deque[tuple[int, dict[str, str], str]] = field(default_factory=deque)
    lost: bool = False
    broken: bool = False
    left_out: int = 0

    @property
    def writes(self) -> int:
        """How many requests were more than a question."""
        return sum(method != "GET" for method, _ in self.requests)


@contextmanager
def running_server() -> Iterator[Server]:
    """Run the server on loopback."""
    state = Server()

    class Handler(_Handler):
        server_state = state

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _RefusedError(Exception):
    """An answer that is no success."""


class _Handler(BaseHTTPRequestHandler):
    server_state: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body together: else the other side waits for one before it acknowledges the other

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        state, method, path = self.server_state, self.command, unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        state.requests.append((method, path))
        state.authorizations.append(self.headers.get("Authorization") or self.headers.get("x-api-key"))
        if state.faults:
            status, headers, said = state.faults.popleft()
            self._answer(status, said.encode(), headers)
            return
        try:
            if path == "/v1/logs":
                self._answer(200, self._logs(body), {"Content-Type": "application/x-protobuf"})
            else:
                found = self._json(method, path, json.loads(body or b"{}"))
                lost = state.lost and method == "POST"
                state.lost = state.lost and not lost
                self._answer(504 if lost else 200, json.dumps(found).encode(), {"Content-Type": "application/json"})
        except _RefusedError as error:
            status, said = error.args
            self._answer(status, said.encode(), {})

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 (the library's names)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _json(self, method: str, path: str, body: dict[str, Any]) -> Any:
        if path in {"/v1/projects", "/api/public/projects", "/api/2.0/mlflow/experiments/search"}:
            return {"data": []}
        if self.server_state.broken:
            raise _RefusedError(500, "Internal Server Error")
        if path in {"/v1/trace_annotations", "/v1/session_annotations"}:
            return self._phoenix(body["data"], "trace_id" if "trace" in path else "session_id")
        if path.startswith("/api/public/scores"):
            return self._langfuse(method, path, body)
        if path.startswith("/api/3.0/mlflow/traces/"):
            return self._mlflow(method, path.split("/")[5:], body)
        raise _RefusedError(404, f"Nothing at {path}")

    def _phoenix(self, data: list[dict[str, Any]], key: str) -> Any:
        assert self.path.endswith("sync=true")
        if missing := {each[key] for each in data} & self.server_state.unknown:
            raise _RefusedError(404, f"{key}s {', '.join(missing)} do not exist.")
        for each in data:
            result = each["result"]
            assert any(result.get(name) is not None for name in ("score", "label", "explanation"))
            self.server_state.held[key, each[key], each["name"], each["identifier"]] = result.get("score")
        return {"data": []}

    def _mlflow(self, method: str, parts: list[str], body: dict[str, Any]) -> Any:
        trace_id, held = parts[0], self.server_state.held
        if trace_id in self.server_state.unknown:
            raise _RefusedError(404, f"Trace with ID '{trace_id}' not found.")
        if method == "GET":
            own = [told | {"assessment_id": ident} for (trace, ident), told in held.items() if trace == trace_id]
            return {"trace": {"trace_info": {"trace_id": trace_id, **({"assessments": own} if own else {})}}}
        if method == "POST":
            ident = f"a-{len(held)}"
            held[trace_id, ident] = body["assessment"]
        else:
            assert set(body["update_mask"].split(",")) <= set(body["assessment"])
            ident = parts[2]
            held[trace_id, ident] |= body["assessment"]
        return {"assessment": held[trace_id, ident]}

    def _langfuse(self, method: str, path: str, body: dict[str, Any]) -> Any:
        if method == "DELETE":
            if self.server_state.held.pop(path.rsplit("/", 1)[1], None) is None:
                raise _RefusedError(404, "Score not found")
            return {}
        if {body.get("traceId"), body.get("sessionId")} & self.server_state.unknown:
            raise _RefusedError(400, "Invalid request data")
        assert isinstance(body["value"], int | float)
        self.server_state.held[body["id"]] = body
        return {"id": body["id"]}

    def _logs(self, body: bytes) -> bytes:
        request = ExportLogsServiceRequest.FromString(body)
        records = [
            record for logs in request.resource_logs for scope in logs.scope_logs for record in scope.log_records
        ]
        self.server_state.events += records
        rejected = self.server_state.left_out if records else 0
        partial = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message="too old" if rejected else "")
        return ExportLogsServiceResponse(partial_success=partial).SerializeToString()
