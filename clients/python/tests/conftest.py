"""A relay for the tests that need one: RELAY_URL, RELAY_WORKSPACE and RELAY_API_KEY."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from document_relay_client import AuthenticatedClient, create_client


@dataclass(frozen=True)
class Arrival:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Target:
    """A web server that keeps the requests it receives. Each answer is a status and headers, 200 by default."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        target = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                target.arrivals.append(Arrival(self.command, self.path, dict(self.headers), body))
                status, headers = target.answers.pop(0) if target.answers else (200, {})
                self.send_response(status)
                for name, value in {"content-length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            do_GET = do_POST = do_PUT = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # Closing waits for the end of an interval.
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def target() -> Iterator[Target]:
    server = Target()
    yield server
    server.close()


@dataclass(frozen=True)
class Relay:
    url: str
    workspace: str
    api_key: str

    def connect(self) -> AuthenticatedClient:
        return create_client(self.url, self.workspace, self.api_key)


@pytest.fixture
def relay() -> Relay:
    names = ("RELAY_URL", "RELAY_WORKSPACE", "RELAY_API_KEY")
    values = [os.environ.get(name, "") for name in names]
    if not all(values):
        pytest.skip(f"{', '.join(names)} name no relay")
    return Relay(*values)
