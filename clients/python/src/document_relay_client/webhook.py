"""Verification of what a webhook destination sends."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime


class WebhookError(Exception):
    """A request that the relay has not signed, or not with this secret, or not lately. Answer it with 401."""


@dataclass(frozen=True)
class Webhook:
    """A request that was verified."""

    id: str
    """The id of the message, which is the same in every repetition."""
    timestamp: datetime


def _bytes_of(text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return decoded if base64.b64encode(decoded).decode() == text else b""


def _key_of(secret: str) -> bytes:
    key = _bytes_of(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    if not key:
        raise ValueError(
            "The secret of a webhook is whsec_ and base64 with padding, or any text. "
            "This one is no base64 after whsec_, or empty."
        )
    return key


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> Webhook:
    """Verifies a request of a webhook destination by its Standard Webhooks signature.

    A document has it if the destination's ``signatures`` is ``both`` or ``standard_webhooks``. One of several
    signatures suffices: there are two while the secret is changed. The signature covers the id, the time and the body,
    not the headers ``x-relay-*``.

    :param headers: The headers of the request, in upper or lower case.
    :param body: The bytes of the body as they were received.
    :param secret: The ``secret`` of the destination's credentials.
    :param tolerance_seconds: How far ``webhook-timestamp`` may be from now.
    :param now: The time in seconds. For tests.
    :raises WebhookError: The request must be refused.
    """
    given = {name.lower(): value for name, value in headers.items()}

    def header(name: str) -> str:
        if not given.get(name):
            raise WebhookError(f"The request has no header {name}.")
        return given[name]

    message_id, seconds, signatures = header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")
    is_time = re.fullmatch(r"[0-9]{1,11}", seconds) is not None
    if not is_time or abs((time.time() if now is None else now) - int(seconds)) > tolerance_seconds:
        raise WebhookError(f"The header webhook-timestamp is not within {tolerance_seconds:g} seconds of now.")
    expected = hmac.new(_key_of(secret), f"{message_id}.{seconds}.".encode() + body, hashlib.sha256).digest()
    found = [_bytes_of(entry[len("v1,") :]) for entry in signatures.split(" ") if entry.startswith("v1,")]
    if not any([hmac.compare_digest(expected, signature) for signature in found]):
        raise WebhookError("No signature of the header webhook-signature matches.")
    return Webhook(message_id, datetime.fromtimestamp(int(seconds), UTC))
