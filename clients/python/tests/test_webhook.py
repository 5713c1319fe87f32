from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest

from document_relay_client import WebhookError, verify_webhook

# Signed by the reference library of Standard Webhooks.
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
body = b'{"test": 2432232314}'
sent = 1614265330
signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
headers = {"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp": str(sent), "Webhook-Signature": signature}


def test_a_signed_request_is_verified() -> None:
    verified = verify_webhook(headers, body, secret, now=sent + 300)
    assert verified.id == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert verified.timestamp == datetime.fromtimestamp(sent, UTC)


def test_one_of_several_signatures_suffices() -> None:
    several = {**headers, "Webhook-Signature": f"v1,AAAA v1a,{signature} v1,? {signature}"}
    assert verify_webhook(several, body, secret, now=sent).id == headers["Webhook-Id"]


def test_a_secret_can_be_any_text() -> None:
    text = "a secret of my own"
    digest = hmac.new(text.encode(), f"{headers['Webhook-Id']}.{sent}.".encode() + b"%PDF\xff", hashlib.sha256).digest()
    signed = {**headers, "Webhook-Signature": f"v1,{base64.b64encode(digest).decode()}"}
    assert verify_webhook(signed, b"%PDF\xff", text, now=sent).id == headers["Webhook-Id"]


no_match = "No signature of the header webhook-signature matches."
not_now = "The header webhook-timestamp is not within 300 seconds of now."


@pytest.mark.parametrize(
    ("changed", "content", "key", "now", "message"),
    [
        ({}, body, "another", sent, no_match),
        ({}, body + b"!", secret, sent, no_match),
        ({"Webhook-Id": "another"}, body, secret, sent, no_match),
        ({"Webhook-Signature": "v1,?"}, body, secret, sent, no_match),
        ({"Webhook-Signature": "v2" + signature[2:]}, body, secret, sent, no_match),
        ({}, body, secret, sent + 301, not_now),
        ({}, body, secret, sent - 301, not_now),
        ({"Webhook-Timestamp": "now"}, body, secret, sent, not_now),
        ({"Webhook-Signature": ""}, body, secret, sent, "The request has no header webhook-signature."),
    ],
)
def test_a_request_is_refused(changed: dict[str, str], content: bytes, key: str, now: int, message: str) -> None:
    with pytest.raises(WebhookError, match=f"^{message}$"):
        verify_webhook({**headers, **changed}, content, key, now=now)


@pytest.mark.parametrize("wrong", ["", "whsec_", "whsec_?", "whsec_A", "whsec_abc", "whsec_abcde=", "whsec_AB=="])
def test_a_secret_that_is_none_is_an_error_of_the_program(wrong: str) -> None:
    with pytest.raises(ValueError, match="The secret of a webhook"):
        verify_webhook(headers, body, wrong, now=sent)
