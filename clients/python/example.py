import os

from document_relay_client import RelayError, create_client, pages, unwrap
from document_relay_client.api.connections import create_connection
from document_relay_client.api.destinations import create_destination
from document_relay_client.api.documents import list_documents
from document_relay_client.api.repositories import create_repository, get_repository
from document_relay_client.models import (
    ConnectionInput,
    DestinationConfigWebhook,
    DestinationCredentialsWebhook,
    DestinationInputWebhook,
    DocumentStatusInput,
    RepositoryInput,
)

relay = create_client(
    os.environ.get("RELAY_URL", "http://127.0.0.1:8080"),
    os.environ.get("RELAY_WORKSPACE", "acme/invoices"),
    os.environ.get("RELAY_API_KEY", ""),
)

webhook = DestinationInputWebhook(
    name="Inbox",
    connector_type="webhook",
    config=DestinationConfigWebhook(url="https://target.example/documents"),
    credentials=DestinationCredentialsWebhook(bearer_token="your-token"),
)
destination = unwrap(create_destination.sync(client=relay, body=webhook)).data
invoices = RepositoryInput(repo_id="Z1", name="Invoices")
repository = unwrap(create_repository.sync(client=relay, body=invoices)).data
connection = ConnectionInput(name="All invoices", repository_ids=[repository.id], destination_ids=[destination.id])
create_connection.sync(client=relay, body=connection)

failed = [
    document
    for page in pages(list_documents.sync, client=relay, status=DocumentStatusInput.FAILED, per_page=100)
    for document in page.data
]
print(f"{len(failed)} failed documents")

try:
    get_repository.sync("no-such-id", client=relay)
except RelayError as error:
    print(error.status, error.code, error)
