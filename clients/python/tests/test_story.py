"""The story of a client against a relay with a worker."""

from __future__ import annotations

from itertools import islice
from typing import Any

import httpx
import pytest

from document_relay_client import RelayError, WebhookError, pages, unwrap, verify_webhook, wait_for_document
from document_relay_client.api.audit_logs import export_audit_logs, list_audit_logs
from document_relay_client.api.connections import create_connection, delete_connection, list_connections
from document_relay_client.api.destinations import create_destination, delete_destination, list_destinations
from document_relay_client.api.documents import (
    get_document_content,
    list_document_attempts,
    list_documents,
    retry_document,
)
from document_relay_client.api.events import list_events
from document_relay_client.api.repositories import create_repository, delete_repository, get_repository
from document_relay_client.models import (
    AuditEventInput,
    ConnectionInput,
    DestinationConfigWebhook,
    DestinationConfigWebhookSignatures,
    DestinationCredentialsWebhook,
    DestinationInputWebhook,
    RepositoryInput,
)

from .conftest import Relay, Target

# Bytes that are not UTF-8.
content = b"%PDF-1.7 \xff\xfe"


def test_story(relay: Relay, target: Target) -> None:
    secret = "a secret of the story"
    with relay.connect() as client:
        begun = unwrap(list_events.sync(client=client, after="latest")).meta.next_cursor

        webhook = DestinationInputWebhook(
            name="Python",
            connector_type="webhook",
            config=DestinationConfigWebhook(
                url=f"{target.url}/documents", signatures=DestinationConfigWebhookSignatures.STANDARD_WEBHOOKS
            ),
            credentials=DestinationCredentialsWebhook(secret=secret),
        )
        destination = unwrap(create_destination.sync(client=client, body=webhook)).data
        invoices = RepositoryInput(repo_id="PYTHON", name="Invoices")
        created = [
            unwrap(create_repository.sync(client=client, body=invoices, idempotency_key="python")).data
            for _ in range(2)
        ]
        assert created[0].id == created[1].id
        repository = created[0]
        wiring = ConnectionInput(name="Python", repository_ids=[repository.id], destination_ids=[destination.id])
        connection = unwrap(create_connection.sync(client=client, body=wiring)).data

        for number in range(3):
            query = f"create&pVersion=0045&contRep=PYTHON&docId=D{number}&compId=data"
            receiver = f"{relay.url}/receiver/{relay.workspace}?{query}"
            answer = httpx.put(receiver, content=content, headers={"content-type": "application/pdf"})
            assert answer.status_code == 201

        listed = list(pages(list_documents.sync, client=client, repo_id="PYTHON", per_page=2))
        assert [len(page.data) for page in listed] == [2, 1]
        ids = [document.id for page in listed for document in page.data]
        for id in ids:
            document = wait_for_document(client, id, seconds=60)
            assert document.attributes.status == "delivered"
            assert [delivery.destination_name for delivery in document.attributes.deliveries] == ["Python"]

        arrived = [arrival for arrival in target.arrivals if arrival.body == content]
        assert {verify_webhook(arrival.headers, arrival.body, secret).id for arrival in arrived} == {
            arrival.headers["webhook-id"] for arrival in arrived
        }
        assert len(arrived) == 3
        with pytest.raises(WebhookError):
            verify_webhook(arrived[0].headers, arrived[0].body, "another")

        assert unwrap(get_document_content.sync(ids[0], client=client)).payload.read() == content
        attempts = unwrap(list_document_attempts.sync(ids[0], client=client))
        assert [attempt.attributes.outcome for attempt in attempts.data] == ["delivered"]

        with pytest.raises(RelayError) as error:
            retry_document.sync(ids[0], client=client)
        assert (error.value.status, error.value.code) == (409, "nothing_to_retry")
        assert error.value.request_id
        assert error.value.doc_url and error.value.doc_url.endswith("/docs/errors#nothing_to_retry")
        with pytest.raises(RelayError) as error:
            create_repository.sync(client=client, body=RepositoryInput(repo_id="", name="A"))
        assert [detail.path for detail in error.value.details] == ["repo_id"]

        made = AuditEventInput.DESTINATION_CREATED
        entries = [
            entry
            for page in pages(list_audit_logs.sync, client=client, event=made, subject_id=destination.id, per_page=1)
            for entry in page.data
        ]
        assert [entry.attributes.subject_id for entry in entries] == [destination.id]
        assert entries[0].id in [
            entry.id for page in pages(list_audit_logs.sync, client=client, per_page=2) for entry in page.data
        ]
        assert "Destination Python (webhook)" in unwrap(
            export_audit_logs.sync(client=client, subject_id=destination.id)
        )
        assert [page.data[0].id for page in pages(list_destinations.sync, client=client, per_page=1)].count(
            destination.id
        ) == 1
        assert connection.id in [item.id for page in pages(list_connections.sync, client=client) for item in page.data]

        assert follow(client, begun, ids) == ids
        following = pages(
            list_events.sync, client=client, after=begun, types="document.received", per_page=2, wait_seconds=30
        )
        events = (event for page in following for event in page.data)
        received = [event.attributes.data["document_id"] for event in islice(events, len(ids))]
        assert received == ids[::-1]

        delete_connection.sync(connection.id, client=client)
        delete_destination.sync(destination.id, client=client)
        delete_repository.sync(repository.id, client=client)
        with pytest.raises(RelayError) as error:
            get_repository.sync(repository.id, client=client)
        assert error.value.code == "not_found"


def follow(client: Any, after: str, ids: list[str]) -> list[str]:
    """Follows the events until each of these documents was delivered. Returns those that were, newest first."""
    delivered: list[str] = []
    while not set(ids) <= set(delivered):
        page = unwrap(list_events.sync(client=client, after=after, types="document.delivered", wait_seconds=30))
        assert page.data, "30 seconds have passed without an event"
        delivered += [event.attributes.data["document_id"] for event in page.data]
        after = page.meta.next_cursor
    return sorted(delivered, reverse=True)
