"""Error responses of the API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from .models.error import Error

T = TypeVar("T")


@dataclass(frozen=True)
class Detail:
    """One invalid value."""

    path: str
    message: str


class RelayError(Exception):
    """An error response of the API, or no response.

    Decide by ``code``, display the message, and quote ``request_id`` to the operator.
    """

    status: int
    """The HTTP status, or 0 without a response."""
    code: str
    """The code of the API, ``no_response``, or ``unknown`` if a proxy has answered."""
    request_id: str | None
    doc_url: str | None
    """The address of the page that explains the code, if the API has answered."""
    details: list[Detail]
    """The invalid values, if the error concerns single values."""
    nothing_changed: bool
    """True if the API states that nothing was changed.

    Otherwise, a status of 500 or more, or no response, leaves open whether a change took effect.
    """
    retry_after_seconds: int | None
    """The number of seconds to wait before the next request, if the API states it."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        request_id: str | None = None,
        doc_url: str | None = None,
        details: list[Detail] | None = None,
        nothing_changed: bool = False,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.doc_url = doc_url
        self.details = details or []
        self.nothing_changed = nothing_changed
        self.retry_after_seconds = retry_after_seconds


def retry_after_of(response: httpx.Response) -> int | None:
    """Returns the seconds of ``Retry-After``. The API sends seconds. A proxy may send a date, which is ignored."""
    text = response.headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _envelope_of(response: httpx.Response) -> dict[str, Any]:
    """Returns the error of the API, or nothing: an error response of a proxy has a different form."""
    try:
        body = json.loads(response.content)
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def error_of(response: httpx.Response) -> RelayError:
    """Returns the error of a response that has been read."""
    error = _envelope_of(response)
    return RelayError(
        error.get("message") or f"The response was {response.status_code} {response.reason_phrase}".rstrip(),
        status=response.status_code,
        code=error.get("code") or "unknown",
        request_id=error.get("request_id") or response.headers.get("x-relay-request-id"),
        doc_url=error.get("doc_url"),
        details=[Detail(detail["path"], detail["message"]) for detail in error.get("details", [])],
        nothing_changed=error.get("nothing_changed", False),
        retry_after_seconds=retry_after_of(response),
    )


def no_response(request: httpx.Request, reason: httpx.TransportError) -> RelayError:
    """Returns the error of a request without a response. The query is left out: it may be long."""
    address = str(request.url).split("?", 1)[0]
    text = str(reason) or type(reason).__name__
    return RelayError(f"{request.method} {address} got no response: {text}", status=0, code="no_response")


def unwrap(answer: T | Error | None) -> T:
    """Returns the answer of an operation without the error, which is in its type and was raised already."""
    if answer is None or isinstance(answer, Error):
        raise TypeError("This is not the answer of a client that create_client has made.")
    return answer
