"""Waiting for documents."""

from __future__ import annotations

import math
import time

from .api.documents import get_document
from .client import AuthenticatedClient
from .models.single_document import SingleDocument
from .relay_error import unwrap

# The API waits no longer.
_request_max_seconds = 30


def wait_for_document(client: AuthenticatedClient, id: str, *, seconds: float = 300) -> SingleDocument:
    """Waits until a document is neither ``pending`` nor ``retrying``.

    :param seconds: The longest time to wait.
    :returns: The document as it is then: check its ``status``.
    :raises RelayError:
    """
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        wait_seconds = min(_request_max_seconds, math.ceil(left))
        document = unwrap(get_document.sync(id, client=client, wait_seconds=wait_seconds)).data
        if document.attributes.status not in ("pending", "retrying") or time.monotonic() >= deadline:
            return document
        # A process that stops answers at once.
        time.sleep(min(1.0, max(0.0, deadline - time.monotonic())))
