// Comments on the schema, so that docs/schema.sql and \d+ in psql explain every table and the queries that each index
// serves. A migration that adds a table or an index adds its comment too; a test requires it.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    comment on table workspaces is 'A tenant: every other row belongs to one workspace.';
    comment on column workspaces.settings is 'Only the values that differ from the defaults in src/domain/settings.ts.';
    comment on column workspaces.rfc_credentials_sealed is
      'The credentials that the bridge uses, sealed like those of destinations. Separate from settings, which are read for every document.';
    comment on index workspaces_user_slug_workspace_slug_key is 'Serves every request, to find the workspace that its path names.';

    comment on table members is 'A person whom API keys and audit entries can name.';
    comment on index members_workspace_id_email_key is 'Allows one member per e-mail address and workspace.';

    comment on table api_keys is 'An API key. Only the SHA-256 of its secret is stored.';
    comment on index api_keys_of_workspace is 'Serves the list of API keys.';

    comment on table repositories is
      'A content repository of the source system. A deleted one keeps its row, because documents still refer to it.';
    comment on index repositories_by_repo_id is 'Serves the receiver''s lookup by contRep. Allows one repository per name.';
    comment on index repositories_of_workspace is 'Serves the list of repositories.';

    comment on table repository_counts is
      'The number of documents that a repository has received, split over sixteen rows: documents that arrive at the same time do not wait '
      'for one row lock. A reader adds the rows up.';

    comment on table destinations is 'A delivery target. A deleted one keeps its row, because deliveries still refer to it.';
    comment on column destinations.credentials_sealed is
      'AES-256-GCM, see src/security/seal.ts. Credentials are never stored in plain text.';
    comment on index destinations_of_workspace is 'Serves the list of destinations.';

    comment on table connections is
      'Links repositories to destinations. A deleted one leaves no row: rows that outlive a connection need only its id.';
    comment on index connections_of_workspace is 'Serves the list of connections.';

    comment on table connection_repositories is 'The repositories of a connection.';
    comment on column connection_repositories.position is 'The order in which the API lists them.';
    comment on index connections_of_repository is 'Serves the connections of one repository, once per received document.';

    comment on table connection_destinations is 'The destinations of a connection.';
    comment on column connection_destinations.position is 'The order in which the API lists them.';
    comment on index connections_of_destination is
      'Serves the connections of one destination, and the deletion of a destination.';

    comment on table contents is
      'The bytes of a document, in PostgreSQL or S3. Written before the document that will own them. A maintenance job removes contents '
      'without an owner.';
    comment on column contents.owned_at is 'Null until a document owns the content, and again once retention has released it.';
    comment on index contents_without_owner is 'Serves the removal of contents without an owner.';

    comment on table content_chunks is
      'The bytes of contents in PostgreSQL, 256 KiB per row: of the sizes measured (64 KiB to 4 MiB), COPY read this one fastest.';
    comment on column content_chunks.data is
      'Stored out of line and uncompressed, which reads about twice as fast: most documents are compressed already.';

    comment on table archive_documents is
      'What the source system identifies by a docId: a set of components, possibly empty.';
    comment on index archive_documents_by_doc_id is
      'Serves every protocol command. Allows exactly one of two simultaneous creates to succeed.';

    comment on table documents is 'One component as it was received: what the relay delivers and the API shows.';
    comment on column documents.archive_document_id is
      'Null for a discarded document, which was acknowledged but not stored.';
    comment on column documents.content_id is 'Null for a discarded document, and once retention has removed the content.';
    comment on column documents.status is 'Set when the document is inserted, then derived from its deliveries by a trigger.';
    comment on column documents.superseded_at is
      'Set when an update replaces the document or a delete ends it. The source system no longer reads it; its deliveries continue.';
    comment on column documents.component_created_at is
      'When the first document of this component was created. Null if this document is the first.';
    comment on column documents.revision is
      '1 for the document as it was received. Delivering it again, after appends for example, is another revision with a workflow of its own.';
    comment on index documents_by_component is
      'Serves info, get and docGet. Allows one readable document per component.';
    comment on index documents_by_received_at is 'Serves the list of documents, unfiltered or by date.';
    comment on index documents_by_status is 'Serves the list of documents by status, with or without dates.';
    comment on index documents_by_repository is 'Serves the list of documents by repository, with or without dates.';
    comment on index documents_by_repository_and_status is
      'Serves the list of documents by repository and status, with or without dates.';
    comment on index documents_by_doc_id is 'Serves metadata that arrives after the bytes and names the docId.';
    comment on index documents_delivered_with_content is 'Serves the removal of content by age.';

    comment on table deliveries is 'One document on its way to one destination.';
    comment on column deliveries.connection_id is 'The connection that planned the delivery. It may have been deleted since.';
    comment on column deliveries.path is 'The planned path below the destination''s prefix. Every attempt uses it.';
    comment on column deliveries.location is 'Where the destination stored the document, as it reported. Null until delivered.';
    comment on column deliveries.overwrites is
      'Counts the attempts for older documents at the same path that may have overwritten this one. Each repeats the delivery.';
    comment on index deliveries_open_of_destination is 'Serves the cancellation of open deliveries when a destination is deleted.';
    comment on index deliveries_held_by_connection is 'Serves the release and the cancellation of held deliveries.';
    comment on function derive_document_status is
      'The status of a document by the statuses of its deliveries. src/domain/delivery-states.ts states the same rule.';
    comment on function settle_document is
      'Updates the status of a document. Two of its deliveries may end at the same moment: the row lock makes the second wait for the '
      'first, and each statement sees what was committed before that statement began, so the second counts the first.';
    comment on trigger delivery_status_changed on deliveries is 'Whatever changes a delivery, its document follows.';

    comment on table outbox is
      'Messages for Temporal that have not been sent yet. Each is inserted with the change that causes it and deleted once it is sent.';
    comment on column outbox.key is 'Identifies the message: inserting it again changes nothing.';
    comment on column outbox.due_at is 'The message is not sent before this time.';
    comment on index outbox_by_due_at is 'Serves the sweep, which sends the messages that have been due the longest first.';

    comment on table delivery_attempts is 'One attempt of a delivery, and its outcome. Partitioned by month.';
    comment on column delivery_attempts.answer is
      'The response of the target: status, selected headers and the beginning of the body, redacted and truncated.';
    comment on index delivery_attempts_of_document is 'Serves the attempts of one document, in order.';
    comment on index delivery_attempts_of_workspace is 'Serves the removal of attempts by age.';

    comment on table audit_logs is 'One change that somebody made. Partitioned by month.';
    comment on index audit_logs_of_workspace is 'Serves the audit log, newest first.';
    comment on index audit_logs_by_event is 'Serves the audit log by event.';
    comment on index audit_logs_by_subject is 'Serves the audit log of one subject.';
    comment on index audit_logs_by_user is 'Serves the audit log by member, and by member and event.';

    comment on table captured_requests is
      'One HTTP request to a receiver or the bridge with its response, redacted. Partitioned by day.';
    comment on column captured_requests.replay_of is 'The captured request that this one repeats.';
    comment on index captured_requests_of_workspace is 'Serves the list of requests, newest first.';
    comment on index captured_requests_by_status is 'Serves the list of requests by status.';
    comment on index captured_requests_by_status_class is 'Serves the list of requests by status class, such as 4xx.';
    comment on index captured_requests_by_repository is 'Serves the list of requests by repository.';
    comment on index captured_requests_by_doc_id is 'Serves the list of requests by docId.';
    comment on index captured_requests_by_method is 'Serves the list of requests by method.';
    comment on index captured_requests_by_channel is 'Serves the list of requests by channel.';

    comment on table captured_bodies is
      'The body of a captured request or response. Apart from captured_requests because it is kept for a shorter time. Partitioned by day.';
    comment on column captured_bodies.redacted is 'Something was removed from the body: it cannot be replayed.';
    comment on column captured_bodies.data is 'Stored out of line and uncompressed, like content_chunks.data.';
    comment on index captured_bodies_of_workspace is
      'Serves the removal of bodies in a workspace that keeps them for a shorter time than others.';

    comment on table certificates is
      'A certificate of a source system. It has no effect until an operator has compared its fingerprint and activated it.';
    comment on column certificates.auth_id is
      'Exactly as it was sent: it resembles the certificate''s subject but is never derived from it.';
    comment on column certificates.received is 'The body of putCert, which getCert returns.';
    comment on column certificates.signer_id is 'SHA-256 of issuer and serial number, by which a signature names its signer.';
    comment on index certificates_repository_id_auth_id_fingerprint_sha256_key is
      'Serves the lookup for a signed request and the list of a repository. A certificate that is sent again keeps its row.';

    comment on table bulk_retries is
      'A retry of every failed delivery that a filter matches. Stored here as well as in Temporal, so that it can be shown after its '
      'workflow has been removed.';
    comment on column bulk_retries.filter is 'repoId, destinationId, dateFrom and dateTo, each optional.';
    comment on column bulk_retries.matched_documents is 'Counted when the bulk retry was created.';
    comment on column bulk_retries.matched_deliveries is 'Counted when the bulk retry was created.';
    comment on column bulk_retries.document_cursor is 'The last document that was processed.';
    comment on column bulk_retries.actor_type is 'The actor who requested it.';
    comment on index bulk_retries_of_workspace is 'Serves the list of bulk retries, newest first.';
  `)
