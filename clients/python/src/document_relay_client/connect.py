"""The client of a workspace."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .client import AuthenticatedClient
from .retry import AsyncRelayHttpClient, RelayHttpClient, Retry

# Longer than the API lets a request wait.
_default_timeout_seconds = 60


def create_client(
    base_url: str,
    workspace: str,
    api_key: str,
    *,
    retry: Retry | None = None,
    **httpx_options: Any,
) -> AuthenticatedClient:
    """Creates a client of one workspace, to pass to the operations of ``document_relay_client.api``.

    Error responses are raised as ``RelayError``, and so is the lack of a response.

    :param base_url: The URL of the installation, for example ``https://relay.example``.
    :param workspace: ``{userSlug}/{workspaceSlug}``.
    :param api_key: An API key of the workspace: ``relay_<id>_<secret>``.
    :param retry: How requests that were answered with 429 or 503 are repeated. ``Retry(max_retries=0)``: they are not.
    :param httpx_options: Passed to ``httpx.Client`` and ``httpx.AsyncClient``: ``timeout`` (60 seconds by default),
        ``verify``, ``proxy`` and others.
    """
    address = "/".join([base_url.rstrip("/"), "api", *(quote(slug, safe="") for slug in workspace.split("/"))])
    headers = {"authorization": f"Bearer {api_key}", "accept": "application/json", **httpx_options.pop("headers", {})}
    options = {"timeout": _default_timeout_seconds, **httpx_options, "base_url": address, "headers": headers}
    policy = retry or Retry()
    client = AuthenticatedClient(base_url=address, token=api_key)
    client.set_httpx_client(RelayHttpClient(policy, **options))
    client.set_async_httpx_client(AsyncRelayHttpClient(policy, **options))
    return client
