"""HTTP clients that raise error responses, after repeating what the API asks to repeat."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from .relay_error import error_of, no_response, retry_after_of

_idempotent_methods = frozenset({"GET", "HEAD", "PUT", "DELETE"})


@dataclass(frozen=True)
class Retry:
    """How requests that were answered with 429 or 503 are repeated.

    Other requests than ``GET``, ``HEAD``, ``PUT`` and ``DELETE`` are repeated only with an ``Idempotency-Key``, and
    none whose body is a stream.
    """

    max_retries: int = 2
    """Repetitions of one request."""
    max_wait_seconds: float = 60
    """A longer ``Retry-After`` is not waited for."""

    def wait_seconds(self, request: httpx.Request, response: httpx.Response, retries: int) -> float | None:
        """Returns how long to wait before the next repetition, or None if there is none."""
        is_repeatable = request.method in _idempotent_methods or "idempotency-key" in request.headers
        # A stream is read once.
        has_stream = not isinstance(request.stream, httpx.ByteStream)
        if response.status_code not in (429, 503) or retries >= self.max_retries or not is_repeatable or has_stream:
            return None
        after = retry_after_of(response)
        seconds = 2.0**retries if after is None else after
        return seconds if seconds <= self.max_wait_seconds else None


class RelayHttpClient(httpx.Client):
    def __init__(self, retry: Retry, **options: Any) -> None:
        super().__init__(**options)
        self._retry = retry

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        retries = 0
        while True:
            try:
                response = super().send(request, **options)
            except httpx.TransportError as reason:
                raise no_response(request, reason) from reason
            if not response.is_error:
                return response
            response.read()
            seconds = self._retry.wait_seconds(request, response, retries)
            if seconds is None:
                raise error_of(response)
            time.sleep(seconds)
            retries += 1


class AsyncRelayHttpClient(httpx.AsyncClient):
    def __init__(self, retry: Retry, **options: Any) -> None:
        super().__init__(**options)
        self._retry = retry

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        retries = 0
        while True:
            try:
                response = await super().send(request, **options)
            except httpx.TransportError as reason:
                raise no_response(request, reason) from reason
            if not response.is_error:
                return response
            await response.aread()
            seconds = self._retry.wait_seconds(request, response, retries)
            if seconds is None:
                raise error_of(response)
            await anyio.sleep(seconds)
            retries += 1
