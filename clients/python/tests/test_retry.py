from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest

from document_relay_client import AuthenticatedClient, RelayError, Retry, create_client
from document_relay_client.api.settings import get_settings

from .conftest import Target

busy = (503, {"retry-after": "0"})
limited = (429, {"retry-after": "0"})


@pytest.fixture
def client(target: Target) -> AuthenticatedClient:
    return create_client(target.url, "acme/prod", "relay_secret")


def refusal(error: pytest.ExceptionInfo[RelayError]) -> tuple[int, str]:
    return error.value.status, error.value.code


def test_a_refused_request_is_repeated_twice(target: Target, client: AuthenticatedClient) -> None:
    target.answers = [limited, busy]
    assert client.get_httpx_client().get("/settings").status_code == 200
    assert [arrival.path for arrival in target.arrivals] == ["/api/acme/prod/settings"] * 3
    target.answers = [busy, busy, busy]
    with pytest.raises(RelayError) as error:
        get_settings.sync(client=client)
    assert (*refusal(error), error.value.retry_after_seconds, str(error.value)) == (
        503,
        "unknown",
        0,
        "The response was 503 Service Unavailable",
    )
    assert len(target.arrivals) == 6


def test_asynchronous_requests_are_repeated_too(target: Target, client: AuthenticatedClient) -> None:
    target.answers = [limited]

    async def ask() -> int:
        async with client as opened:
            return (await opened.get_async_httpx_client().get("/settings")).status_code

    assert asyncio.run(ask()) == 200
    assert len(target.arrivals) == 2


def test_a_post_is_repeated_with_its_body_if_it_has_an_idempotency_key(
    target: Target, client: AuthenticatedClient
) -> None:
    target.answers = [busy]
    client.get_httpx_client().post("/repositories", json={"repo_id": "Z1"}, headers={"Idempotency-Key": "again"})
    assert [json.loads(arrival.body) for arrival in target.arrivals] == [{"repo_id": "Z1"}] * 2
    target.answers = [busy]
    with pytest.raises(RelayError) as error:
        client.get_httpx_client().post("/repositories", json={"repo_id": "Z1"})
    assert refusal(error) == (503, "unknown")
    assert len(target.arrivals) == 3


def test_a_stream_and_a_long_time_are_not_repeated(target: Target, client: AuthenticatedClient) -> None:
    def stream() -> Iterator[bytes]:
        yield b"a stream"

    target.answers = [busy, (429, {"retry-after": "61"}), busy]
    with pytest.raises(RelayError):
        client.get_httpx_client().put("/settings", content=stream())
    with pytest.raises(RelayError):
        client.get_httpx_client().get("/settings")
    once = create_client(target.url, "acme/prod", "relay_secret", retry=Retry(max_retries=0))
    with pytest.raises(RelayError):
        once.get_httpx_client().get("/settings")
    assert len(target.arrivals) == 3


def test_without_a_response_the_error_names_the_request_and_the_reason() -> None:
    client = create_client("http://127.0.0.1:1", "acme/prod", "relay_secret")
    with pytest.raises(RelayError) as error:
        client.get_httpx_client().get("/documents", params={"status": "failed"})
    assert refusal(error) == (0, "no_response")
    assert str(error.value).startswith("GET http://127.0.0.1:1/api/acme/prod/documents got no response: ")
    assert isinstance(error.value.__cause__, httpx.TransportError)
