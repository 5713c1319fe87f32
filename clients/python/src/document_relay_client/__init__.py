"""Typed client of Document Relay's management API.

``document_relay_client.api`` has a module for each operation, ``document_relay_client.models`` one for each schema.
"""

from .client import AuthenticatedClient
from .connect import create_client
from .pages import pages
from .relay_error import RelayError, unwrap
from .retry import Retry
from .wait import wait_for_document
from .webhook import Webhook, WebhookError, verify_webhook

__all__ = [
    "AuthenticatedClient",
    "RelayError",
    "Retry",
    "Webhook",
    "WebhookError",
    "create_client",
    "pages",
    "unwrap",
    "verify_webhook",
    "wait_for_document",
]
