// Generated from openapi.json by `npm run docs`. Do not edit.

export interface paths {
    "/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description Returns the API keys that have not been revoked, newest first. Required level: `admin`.
         */
        get: operations["listApiKeys"];
        put?: never;
        /**
         * Create an API key
         * @description The response contains the key. No later response does. Required level: `admin`. Audit event: `apikey.created`.
         */
        post: operations["createApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api-keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description The key is refused from the next request on. Required level: `admin`. Audit event: `apikey.revoked`.
         */
        delete: operations["deleteApiKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit-logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit log entries
         * @description Returns who changed what in the workspace, newest first, or oldest first with `after`. Required level: `viewer`.
         */
        get: operations["listAuditLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit-logs.csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export audit log entries as CSV
         * @description Accepts the filters of the list and returns the newest entries first. `per_page` has no effect. Required level: `viewer`.
         */
        get: operations["exportAuditLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk-retries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List bulk retries
         * @description Returns the bulk retries of the workspace with their progress, newest first. Required level: `viewer`.
         */
        get: operations["listBulkRetries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk-retries/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a bulk retry
         * @description Shows the progress of a bulk retry, and how many of its deliveries have arrived. Required level: `viewer`.
         */
        get: operations["getBulkRetry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk-retries/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a bulk retry
         * @description Stops the bulk retry before its next document. Deliveries that were already retried are not affected. Required level: `member`. Audit event: `bulk_retry.cancelled`.
         */
        post: operations["cancelBulkRetry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/connections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List connections
         * @description Returns the connections of the workspace in the order in which they were created: all of them, or one page with `meta` if the query has `page` or `per_page`. Required level: `viewer`.
         */
        get: operations["listConnections"];
        put?: never;
        /**
         * Create a connection
         * @description Documents that arrive at one of the repositories are delivered to all of the destinations. Required level: `member`. Audit event: `connection.created`.
         */
        post: operations["createConnection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/connections/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a connection
         * @description Returns the connection with its repositories and destinations. Required level: `viewer`.
         */
        get: operations["getConnection"];
        put?: never;
        post?: never;
        /**
         * Delete a connection
         * @description Cancels the deliveries that the connection held. Deliveries that have already started continue. Required level: `admin`. Audit event: `connection.deleted`.
         */
        delete: operations["deleteConnection"];
        options?: never;
        head?: never;
        /**
         * Update a connection
         * @description `repository_ids`, `destination_ids` and `settings` replace the current value as a whole. Activating a connection releases the deliveries that it held, with a new retry budget. Deactivating it also holds what is being retried, from the next attempt on. What it held for a destination that `destination_ids` no longer contains is cancelled. Required level: `member`. Audit events: `connection.updated`, `connection.toggled`.
         */
        patch: operations["updateConnection"];
        trace?: never;
    };
    "/connections/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the settings of a connection
         * @description Returns the newest documents of the repositories, at most 50, and what a connection with these settings would do with each: the path that it would get at a destination, or the condition of the filter that passes it over. Changes nothing. Required level: `viewer`.
         */
        post: operations["previewConnection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/connector-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List connector types
         * @description Describes the types of destinations: the schemas of their values, which of them are secret, and what each type can do. Required level: `viewer`.
         */
        get: operations["listConnectorTypes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List destinations
         * @description Returns the destinations of the workspace in the order in which they were created. Required level: `viewer`.
         */
        get: operations["listDestinations"];
        put?: never;
        /**
         * Create a destination
         * @description Required level: `member`. Audit event: `destination.created`.
         */
        post: operations["createDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a destination
         * @description Returns the destination with the connections that use it. Required level: `viewer`.
         */
        get: operations["getDestination"];
        put?: never;
        post?: never;
        /**
         * Delete a destination
         * @description Also deletes every connection that uses the destination, even if the connection has other destinations, and every notification that is sent to it. Cancels the deliveries to the destination that have not succeeded. Erases its config and credentials. Required level: `admin`. Audit events: `destination.deleted`, `connection.deleted`, `connection.updated`, `notification.deleted`.
         */
        delete: operations["deleteDestination"];
        options?: never;
        head?: never;
        /**
         * Update a destination
         * @description `config` is merged into the current config; null removes a key. `credentials` replace the current credentials. They are required if the request changes where stored credentials are sent, for example `host` or `url`; the page of each connector lists these keys. Required level: `member`. Audit event: `destination.updated`.
         */
        patch: operations["updateDestination"];
        trace?: never;
    };
    "/destinations/{id}/attempt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attempt the deliveries of a destination now
         * @description Has the next attempt of every delivery to the destination made at once that waits for it, by a workflow that shows its progress in Temporal. Deliveries in the line of the destination keep their order, and an open circuit lets the first of them try. `waiting_deliveries` is the number of deliveries that wait now, at most 10,000. Required level: `member`. Audit event: `destination.attempted`.
         */
        post: operations["attemptDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations/{id}/download-links/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke download links
         * @description Revokes every download link that was sent to this destination in an e-mail. Links in later e-mails are valid. To revoke the link of one document, erase its content. Required level: `admin`. Audit event: `destination.links_revoked`.
         */
        post: operations["revokeDestinationDownloadLinks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a destination
         * @description Checks that the relay can authenticate to the target and write to it; `message` says what was tried. A success sets the status to `connected`, and pins the host key of an SFTP server whose destination has none. Required level: `member`.
         */
        post: operations["testDestination"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations/{id}/test-change": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a change of a destination before saving it
         * @description Takes what an update takes, and tests the destination as the update would leave it. Without `credentials`, the test uses the stored ones. They are required if the change alters where stored credentials are sent. Stores nothing. Required level: `member`.
         */
        post: operations["testDestinationChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/destinations/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a destination before creating it
         * @description Checks that the relay can authenticate to the target and write to it; `message` says what was tried. Stores nothing. Required level: `member`.
         */
        post: operations["testDestinationConfig"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/discarded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List discarded documents by repository
         * @description Counts the documents that were discarded because no connection led from their repository to a destination, and that nobody has acknowledged or replayed. `POST /documents/replay` replays their requests, and `POST /documents/acknowledge` acknowledges them. Required level: `viewer`.
         */
        get: operations["listDiscardedGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/document-migrations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List migrations of documents
         * @description Returns the migrations from the upstreams of repositories with their progress, newest first. `relay migrate-documents` starts them, because it reads the lists. Required level: `viewer`.
         */
        get: operations["listDocumentMigrations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/document-migrations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a migration of documents
         * @description Shows the progress of a migration, and how many rows of its lists have each verdict. Required level: `viewer`.
         */
        get: operations["getDocumentMigration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/document-migrations/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a migration
         * @description Ends the migration before its next documents. What it has copied stays. Required level: `admin`. Audit event: `document_migration.cancelled`.
         */
        post: operations["cancelDocumentMigration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/document-migrations/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a migration
         * @description Stops the migration before its next documents. Required level: `admin`. Audit event: `document_migration.paused`.
         */
        post: operations["pauseDocumentMigration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/document-migrations/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a migration
         * @description Continues a paused migration, within 15 seconds. Required level: `admin`. Audit event: `document_migration.resumed`.
         */
        post: operations["resumeDocumentMigration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List documents
         * @description Returns the documents of the workspace, newest first, in numbered pages. `GET /documents/search` has more conditions. Required level: `viewer`.
         */
        get: operations["listDocuments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a document
         * @description Returns the document with its metadata and its location at each destination. With `wait_seconds`, a document that is `pending` or `retrying` is returned when it has another status, or after this time as it is then. Required level: `viewer`.
         */
        get: operations["getDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge a failed or discarded document
         * @description Marks a failed document that will not be retried, or a discarded one that will not be replayed, so that `GET /documents?status=failed&acknowledged=false` lists only documents that need attention. Bulk retries leave it out. Its deliveries that are still open go on, and `meta.open_deliveries` names them; the content is kept for them. Each change of its status, a retry, and a delivery that fails later end the acknowledgement. Required level: `member`. Audit event: `document.acknowledged`.
         */
        post: operations["acknowledgeDocument"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/attempt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attempt a document now
         * @description Makes the next attempt of every delivery of the document that waits for it, or in the line of its destination, at once. It uses up the retry budget like any other attempt. Required level: `member`. Audit event: `document.attempted`.
         */
        post: operations["attemptDocument"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the delivery attempts of a document
         * @description Returns every attempt, oldest first, with its duration, its outcome and the response of the target. Required level: `viewer`.
         */
        get: operations["listDocumentAttempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download the content of a document
         * @description Returns the bytes as they were received. The answer is 404 if `content_retained` is false. The header `Range` with one range of bytes is answered with 206, and `If-Range` compares the `etag`. Required level: `viewer`.
         */
        get: operations["getDocumentContent"];
        put?: never;
        post?: never;
        /**
         * Erase the content of a document
         * @description Removes the bytes of the document and the captured bodies of every request about its `doc_id`. Deliveries that have not been made are cancelled, and download links end. The document stays in the lists with `content_retained` false. Irreversible. Required level: `admin`. Audit event: `document.erased`.
         */
        delete: operations["deleteDocumentContent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/deliveries/{destinationId}/attempt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attempt a delivery now
         * @description Makes the next attempt of a delivery that waits for it, or in the line of its destination, at once. Required level: `member`. Audit event: `document.attempted`.
         */
        post: operations["attemptDocumentDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/deliveries/{destinationId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a delivery
         * @description Retries a delivery that has failed or was cancelled, whose workflow no longer runs, or that is held although its connection is active. Required level: `member`. Audit event: `document.retried`.
         */
        post: operations["retryDocumentDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/enrich": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fetch the business data of a document again
         * @description Has the calls of the enrichment of its repository made again, in the background and from the first step. What was found stays until a call finds something else. Also for a document that arrived before there was an enrichment. Deliveries are not repeated. Required level: `member`. Audit event: `document.enriched`.
         */
        post: operations["enrichDocument"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a document
         * @description Retries the failed and cancelled deliveries of the document with a new retry budget, if their destinations still exist. Deliveries that succeeded are not repeated. Required level: `member`. Audit event: `document.retried`.
         */
        post: operations["retryDocument"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge discarded documents
         * @description Acknowledges, in the background, every document of a repository that was discarded for lack of a connection: it is not needed anywhere. Required level: `member`. Audit events: `bulk_retry.started`, `document.acknowledged`.
         */
        post: operations["startBulkAcknowledgement"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/by-doc-id/{repo_id}/{doc_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Set the metadata of a document
         * @description Sets the values in the request on every document that was received under this `doc_id`. Omitted values are not changed. Required level: `member`. Audit event: `document.metadata_updated`.
         */
        put: operations["setDocumentMetadata"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/deliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver documents to a destination that was connected later
         * @description Delivers, in the background, the documents that were never planned for this destination, from the repositories that a connection leads from, as far as its filter selects them. Documents that were replaced or deleted, or whose content is gone, are left out. Safe to repeat. Required level: `member`. Audit event: `bulk_retry.started`.
         */
        post: operations["startBulkDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay the requests of discarded documents
         * @description Replays, in the background, the request of every document of a repository that was discarded for lack of a connection and was not acknowledged or replayed. A document counts as acknowledged when its replay has succeeded, so this is safe to repeat. Required level: `admin`. Audit events: `bulk_retry.started`, `request.replayed`, `document.acknowledged`.
         */
        post: operations["startBulkReplay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry documents in bulk
         * @description Retries every failed delivery that matches the filters, in the background. With `dry_run`, only counts them. Required level: `member`. Audit events: `bulk_retry.started`, `document.retried`.
         */
        post: operations["startBulkRetry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/documents/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search documents
         * @description Returns the documents that meet every condition, newest first. There is no total: continue with `before` until `next_cursor` is null. A page may have fewer documents than `per_page`, even none, because one request reads a limited number of documents. With `after`, the documents are oldest first, by the time of receipt. A document is found when it was received completely, so a reader that follows them misses one that took more than a minute: `GET /events` has no gap. Required level: `viewer`.
         */
        get: operations["searchDocuments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/enrichments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List enrichments
         * @description Returns the enrichments of the workspace in the order in which they were created. Required level: `viewer`.
         */
        get: operations["listEnrichments"];
        put?: never;
        /**
         * Create an enrichment
         * @description From then on, the documents that these repositories receive wait for their business data, for `wait_seconds` at most. docs/enrichments.md has an enrichment for each common kind of document. Required level: `member`. Audit event: `enrichment.created`.
         */
        post: operations["createEnrichment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/enrichments/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve an enrichment
         * @description Required level: `viewer`.
         */
        get: operations["getEnrichment"];
        put?: never;
        post?: never;
        /**
         * Delete an enrichment
         * @description Documents keep their fields. Deliveries that wait for the enrichment start. Required level: `admin`. Audit event: `enrichment.deleted`.
         */
        delete: operations["deleteEnrichment"];
        options?: never;
        head?: never;
        /**
         * Update an enrichment
         * @description `repository_ids`, `http`, `steps` and `credentials` replace the current values. A call under way uses the previous ones. Required level: `member`. Audit event: `enrichment.updated`.
         */
        patch: operations["updateEnrichment"];
        trace?: never;
    };
    "/enrichments/{id}/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try an enrichment on a document
         * @description Makes the calls for a document of the workspace, and returns for each step what was sent, what came back and what each field finds. Stores nothing at the document. The enrichment need not serve its repository, nor be active. All calls together may take a minute. Required level: `member`. Audit event: `enrichment.tried`.
         */
        post: operations["tryEnrichment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/event-subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List event subscriptions
         * @description Returns the subscriptions of the workspace in the order in which they were created, and how far each is. Required level: `viewer`.
         */
        get: operations["listEventSubscriptions"];
        put?: never;
        /**
         * Create an event subscription
         * @description The relay sends each event of these types to the webhook, one after the other in their order, and repeats one until it is accepted. Required level: `member`. Audit event: `event_subscription.created`.
         */
        post: operations["createEventSubscription"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/event-subscriptions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve an event subscription
         * @description Required level: `viewer`.
         */
        get: operations["getEventSubscription"];
        put?: never;
        post?: never;
        /**
         * Delete an event subscription
         * @description Required level: `admin`. Audit event: `event_subscription.deleted`.
         */
        delete: operations["deleteEventSubscription"];
        options?: never;
        head?: never;
        /**
         * Update an event subscription
         * @description `events` replaces the current list. What is sent next is sent at once. Required level: `member`. Audit event: `event_subscription.updated`.
         */
        patch: operations["updateEventSubscription"];
        trace?: never;
    };
    "/event-subscriptions/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send events again
         * @description Sets the cursor, also forwards: the events after it are sent, with the same ids as before. An attempt that waits is given up, and the next one is made at once. Required level: `member`. Audit event: `event_subscription.replayed`.
         */
        post: operations["replayEventSubscription"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow events
         * @description Returns what has happened, oldest first. A reader that passes `next_cursor` of each answer as `after` misses nothing, and gets the events of a document in their order. Events are kept for `events_days` of the workspace. Required level: `viewer`.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List failures by destination and error
         * @description Groups the deliveries that need attention by destination and error code, the largest group first. Deliveries of acknowledged documents are left out. `POST /documents/retry` with `destination_id` and `error_code` retries a group, and `GET /documents` with `destination_id`, `delivery_status` and `error_code` lists its documents. Required level: `viewer`.
         */
        get: operations["listFailures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List notifications
         * @description Returns the notifications of the workspace in the order in which they were created. Required level: `viewer`.
         */
        get: operations["listNotifications"];
        put?: never;
        /**
         * Create a notification
         * @description The relay sends one notice when an incident begins, and one when it has ended. Incidents that are open already are announced, too. Required level: `member`. Audit event: `notification.created`.
         */
        post: operations["createNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/notifications/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a notification
         * @description Required level: `viewer`.
         */
        get: operations["getNotification"];
        put?: never;
        post?: never;
        /**
         * Delete a notification
         * @description Notices that have not been delivered are deleted with it. Required level: `admin`. Audit event: `notification.deleted`.
         */
        delete: operations["deleteNotification"];
        options?: never;
        head?: never;
        /**
         * Update a notification
         * @description `events` replaces the current list. Required level: `member`. Audit event: `notification.updated`.
         */
        patch: operations["updateNotification"];
        trace?: never;
    };
    "/notifications/{id}/notices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the notices of a notification
         * @description Returns what the notification has announced, newest first, and how far the delivery of each notice is. Required level: `viewer`.
         */
        get: operations["listNotificationNotices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/notifications/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test
         * @description Sends a message of the type `relay.notification.test` to the destination of the notification, once, and says what the target answered. The notification may be inactive. The message is not listed among its notices. Required level: `member`. Audit event: `notification.tested`.
         */
        post: operations["testNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/repositories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List repositories
         * @description Returns the repositories of the workspace in the order in which they were created. Required level: `viewer`.
         */
        get: operations["listRepositories"];
        put?: never;
        /**
         * Create a repository
         * @description `repo_id` must match the content repository in the source system and cannot be changed later. The value `any` of `signed_parameter_order` requires a key of level `admin`. Required level: `member`. Audit event: `repository.created`.
         */
        post: operations["createRepository"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/repositories/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a repository
         * @description Returns the repository with its certificates and the connections that use it. Required level: `viewer`.
         */
        get: operations["getRepository"];
        put?: never;
        post?: never;
        /**
         * Delete a repository
         * @description Also deletes its certificates and its active connections, even if a connection has other repositories. Deliveries that these connections held are cancelled. Documents that were already received are kept. Required level: `admin`. Audit events: `repository.deleted`, `cert.deleted`, `connection.deleted`, `connection.updated`.
         */
        delete: operations["deleteRepository"];
        options?: never;
        head?: never;
        /**
         * Update a repository
         * @description An inactive repository refuses all requests of the source system. Turning `signature_verification` off, or setting `signed_parameter_order` to `any`, or `accepts_mcreate` from false to true, requires a key of level `admin`. Required level: `member`. Audit event: `repository.updated`.
         */
        patch: operations["updateRepository"];
        trace?: never;
    };
    "/repositories/{id}/certificates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the certificates of a repository
         * @description Returns the certificates in the order in which they were received. Compare the fingerprint before you activate a certificate. Required level: `viewer`.
         */
        get: operations["listRepositoryCertificates"];
        put?: never;
        /**
         * Add a certificate to a repository
         * @description Use this endpoint if the source system cannot send its certificate itself. Required level: `admin`. Audit events: `cert.received`, `cert.activated`.
         */
        post: operations["createRepositoryCertificate"];
        /**
         * Delete the inactive certificates of a repository
         * @description Deletes all inactive certificates, for example after somebody has sent many of them. A certificate that the source system sends again is added as inactive. Required level: `admin`. Audit event: `cert.deleted`.
         */
        delete: operations["deleteInactiveCertificates"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/repositories/{id}/certificates/{certificateId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a certificate
         * @description If the source system sends the certificate again, it is added as inactive. Required level: `admin`. Audit event: `cert.deleted`.
         */
        delete: operations["deleteRepositoryCertificate"];
        options?: never;
        head?: never;
        /**
         * Activate or deactivate a certificate
         * @description Requests signed with the key of an active certificate are accepted. Required level: `admin`. Audit events: `cert.activated`, `cert.deactivated`.
         */
        patch: operations["updateRepositoryCertificate"];
        trace?: never;
    };
    "/repositories/{id}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a repository
         * @description Uses the repository as its source system would, over HTTP at the receiver of this process, and reports what is wrong: the checks of `relay check source`. If the repository requires signatures, a certificate of the check is sent, activated and deleted again. The documents of the check are deleted from the archive at its end, and delivered like any others before. Takes a second or two. Required level: `admin`. Audit events: `repository.checked`, `cert.received`, `cert.activated`, `cert.deleted`.
         */
        post: operations["checkRepository"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/repositories/{id}/test-document": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test document
         * @description Stores a PDF of one page in the repository as if the source system had sent it, so that it is delivered to every destination. Neither signature nor source address are checked. The document stays until it is erased, like any other. Required level: `member`. Audit event: `repository.test_document_sent`.
         */
        post: operations["sendTestDocument"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/repositories/{id}/test-upstream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test the upstream of a repository
         * @description Asks the content server for the repository and, signed if a certificate is set, for a document that does not exist; `message` says what it answers. Changes nothing, here or there. Required level: `member`.
         */
        post: operations["testUpstream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List captured requests
         * @description Returns the requests that reached the receiver or the bridge, newest first, or oldest first with `after`. A request has an id of the time of its arrival and is found when it has ended. A reader that follows the list with `after` therefore misses a request that took more than a minute, or that ended while the database was unavailable, unless it stays behind with `date_to`. Required level: `viewer`.
         */
        get: operations["listRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a captured request
         * @description Returns the request with its headers, and a preview of each body that is HTML, JSON or XML under 64 KiB. Required level: `viewer`.
         */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests/{id}/body/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a captured body
         * @description Returns the bytes of the request or response body with their original content type. An empty body is returned with 0 bytes. Returns 404 if the body is not stored. Required level: `viewer`.
         */
        get: operations["getRequestBody"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a captured request
         * @description Processes the request again as if it had just arrived, except that its signature is verified as of the time of the original request. The replay is captured as a new request. If it succeeds, discarded documents of the original request count as acknowledged. Required level: `admin`. Audit events: `request.replayed`, `document.acknowledged`.
         */
        post: operations["replayRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve the workspace settings
         * @description Returns the effective settings, including defaults. Required level: `viewer`.
         */
        get: operations["getSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update the workspace settings
         * @description Omitted settings are not changed. Required level: `admin`. Audit event: `settings.updated`.
         */
        patch: operations["updateSettings"];
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve statistics
         * @description Counts documents, deliveries and attempts by status and by hour or day, names the oldest deliveries and the most frequent errors, and estimates how long deliveries take. Without dates, the range is the last 24 hours. Its maximum length is 92 days. The counts are exact. Required level: `viewer`.
         */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve statistics of each destination
         * @description Counts the attempts of each destination by hour or day, and its deliveries by status. The destinations have the order, and so the pages, of the list of destinations. The range is as in the statistics of the workspace. The counts are exact. Required level: `viewer`.
         */
        get: operations["listDestinationStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "certificate.received": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The source system has sent a certificate
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onCertificateReceived"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "delivery.cancelled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A delivery was cancelled
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDeliveryCancelled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "delivery.delivered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A destination has received a document
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDeliveryDelivered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "delivery.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A delivery has failed and is not repeated unless it is retried
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDeliveryFailed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.acknowledged": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * An operator has acknowledged that a document is not delivered
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentAcknowledged"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.appended": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The source system has appended to a document
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentAppended"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The source system has deleted a document: it reads it no longer
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.delivered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Every delivery of a document has ended, at least one of them with success
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentDelivered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.discarded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A document goes to no destination
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentDiscarded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.erased": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The content of a document was erased
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentErased"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A delivery of a document has failed and is not repeated, or all were cancelled
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentFailed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Business data was found after the document was sent
         * @description Sent to a destination of the kind webhook that has got the document (Standard Webhooks, HTTP Message Signatures), whatever its `format` is.
         */
        post: operations["onDocumentMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.metadata_updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The business data of a document has changed: retrieve the document for it
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentMetadataUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.received": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A document was received and acknowledged
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentReceived"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.superseded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The source system has replaced a document by another one
         * @description Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.
         */
        post: operations["onDocumentSuperseded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.certificate.expiring": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A certificate expires soon: one that signed requests need, and no newer one is active, or the client certificate of a destination
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayCertificateExpiring"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.certificate.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident certificate.expiring has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayCertificateRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.delivery.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliveries to a destination have failed with the same error code, and nobody has acknowledged them
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayDeliveryFailed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.delivery.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident delivery.failed has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayDeliveryRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.destination.failing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attempts at a destination fail one after the other, or its circuit is open
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayDestinationFailing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.destination.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident destination.failing has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayDestinationRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.enrichment.failing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The calls of an enrichment fail for its latest documents: they are delivered without business data
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayEnrichmentFailing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.enrichment.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident enrichment.failing has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayEnrichmentRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.event_subscription.failing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The receiver of an event subscription has not accepted the next event for 15 minutes
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayEventSubscriptionFailing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.event_subscription.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident event_subscription.failing has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayEventSubscriptionRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.notification.test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A test of a notification
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayNotificationTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.repository.not_connected": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A repository receives documents, and no connection leads from it to a destination: they are discarded
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayRepositoryNotConnected"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.repository.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident repository.not_connected has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayRepositoryRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.source.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident source.silent has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelaySourceRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.source.silent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The source system has sent nothing to a repository for `silence_hours`
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelaySourceSilent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.upstream.failing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The earlier content server of a repository has failed for 5 minutes: documents that only it has, and new ones, are answered with 503
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayUpstreamFailing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "relay.upstream.recovered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The incident upstream.failing has ended
         * @description Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).
         */
        post: operations["onRelayUpstreamRecovered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        AcknowledgedDocumentMeta: {
            /** @description The deliveries that are still to be made. */
            open_deliveries: components["schemas"]["OpenDelivery"][];
        };
        AcknowledgedDocumentResponse: {
            data: components["schemas"]["Document"];
            /** @description Present if deliveries are still open. */
            meta?: components["schemas"]["AcknowledgedDocumentMeta"];
        };
        ActivityStatus: "active" | "inactive";
        /** @enum {string} */
        ActivityStatusInput: "active" | "inactive";
        ActorType: "user" | "api_key" | "system";
        AffectedDestination: {
            id: string;
            name: string;
            repo_ids: string[];
        };
        ApiKey: {
            attributes: components["schemas"]["ApiKeyAttributes"];
            id: string;
            /** @constant */
            type: "api_key";
        };
        ApiKeyAttributes: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            last_used_at: string | null;
            level: components["schemas"]["KeyLevel"];
            name: string;
            user_id: string | null;
        };
        ApiKeyInput: {
            /**
             * Format: date-time
             * @description The time at which the key expires. Null means never.
             */
            expires_at?: string | null;
            /** @description The level of the key. */
            level: components["schemas"]["KeyLevelInput"];
            /** @description The display name. */
            name: string;
            /**
             * @description The member to whom the key belongs. Audit log entries name this member.
             * @default null
             */
            user_id?: string | null;
        };
        ApiKeyList: {
            data: components["schemas"]["ApiKey"][];
            meta: components["schemas"]["PageMeta"];
        };
        ApiKeyWithSecret: {
            attributes: components["schemas"]["ApiKeyWithSecretAttributes"];
            id: string;
            /** @constant */
            type: "api_key";
        };
        ApiKeyWithSecretAttributes: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** @description The key. Returned only in this response. */
            key: string;
            /** Format: date-time */
            last_used_at: string | null;
            level: components["schemas"]["KeyLevel"];
            name: string;
            user_id: string | null;
        };
        ApiKeyWithSecretResponse: {
            data: components["schemas"]["ApiKeyWithSecret"];
        };
        /** @description Attempts that started in the range, by outcome. */
        AttemptCounts: {
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            interrupted: number;
            /** Format: int64 */
            permanent: number;
            /** Format: int64 */
            retryable: number;
            /** Format: int64 */
            superseded: number;
        };
        AttemptedDestination: {
            attributes: components["schemas"]["AttemptedDestinationAttributes"];
            id: string;
            /** @constant */
            type: "destination";
        };
        AttemptedDestinationAttributes: {
            /** Format: int64 */
            waiting_deliveries: number;
        };
        AttemptedDestinationResponse: {
            data: components["schemas"]["AttemptedDestination"];
        };
        AttemptError: {
            code: string;
            message: string;
        };
        AttemptOutcome: "delivered" | "superseded" | "retryable" | "permanent" | "interrupted";
        AuditEvent: "cert.received" | "cert.activated" | "cert.deactivated" | "cert.deleted" | "repository.created" | "repository.updated" | "repository.deleted" | "repository.test_document_sent" | "repository.checked" | "repository.deletions_repeated" | "destination.created" | "destination.updated" | "destination.deleted" | "destination.links_revoked" | "destination.attempted" | "connection.created" | "connection.updated" | "connection.toggled" | "connection.deleted" | "enrichment.created" | "enrichment.updated" | "enrichment.deleted" | "enrichment.tried" | "event_subscription.created" | "event_subscription.updated" | "event_subscription.replayed" | "event_subscription.deleted" | "notification.created" | "notification.updated" | "notification.deleted" | "notification.tested" | "incident.opened" | "incident.closed" | "notice.delivered" | "notice.failed" | "document.retried" | "document.attempted" | "document.acknowledged" | "document.erased" | "document.enriched" | "document.metadata_updated" | "bulk_retry.started" | "bulk_retry.cancelled" | "document_migration.started" | "document_migration.paused" | "document_migration.resumed" | "document_migration.cancelled" | "request.replayed" | "settings.updated" | "member.created" | "member.updated" | "member.deleted" | "apikey.created" | "apikey.revoked" | "rfc.call";
        /** @enum {string} */
        AuditEventInput: "cert.received" | "cert.activated" | "cert.deactivated" | "cert.deleted" | "repository.created" | "repository.updated" | "repository.deleted" | "repository.test_document_sent" | "repository.checked" | "repository.deletions_repeated" | "destination.created" | "destination.updated" | "destination.deleted" | "destination.links_revoked" | "destination.attempted" | "connection.created" | "connection.updated" | "connection.toggled" | "connection.deleted" | "enrichment.created" | "enrichment.updated" | "enrichment.deleted" | "enrichment.tried" | "event_subscription.created" | "event_subscription.updated" | "event_subscription.replayed" | "event_subscription.deleted" | "notification.created" | "notification.updated" | "notification.deleted" | "notification.tested" | "incident.opened" | "incident.closed" | "notice.delivered" | "notice.failed" | "document.retried" | "document.attempted" | "document.acknowledged" | "document.erased" | "document.enriched" | "document.metadata_updated" | "bulk_retry.started" | "bulk_retry.cancelled" | "document_migration.started" | "document_migration.paused" | "document_migration.resumed" | "document_migration.cancelled" | "request.replayed" | "settings.updated" | "member.created" | "member.updated" | "member.deleted" | "apikey.created" | "apikey.revoked" | "rfc.call";
        AuditLog: {
            attributes: components["schemas"]["AuditLogAttributes"];
            id: string;
            /** @constant */
            type: "audit_log";
        };
        AuditLogAttributes: {
            actor_type: components["schemas"]["ActorType"];
            /** Format: date-time */
            created_at: string;
            description: string;
            event: components["schemas"]["AuditEvent"];
            metadata: {
                [key: string]: unknown;
            };
            subject_id: string;
            subject_type: components["schemas"]["AuditSubjectType"];
            user_id: string | null;
        };
        AuditLogList: {
            data: components["schemas"]["AuditLog"][];
            meta: components["schemas"]["CursorMeta"];
        };
        AuditSubjectType: "Certificate" | "Repository" | "Destination" | "Connection" | "Enrichment" | "EventSubscription" | "Notification" | "Incident" | "Notice" | "Document" | "BulkRetry" | "DocumentMigration" | "CapturedRequest" | "Settings" | "Member" | "ApiKey" | "RfcCall";
        /** @enum {string} */
        AuditSubjectTypeInput: "Certificate" | "Repository" | "Destination" | "Connection" | "Enrichment" | "EventSubscription" | "Notification" | "Incident" | "Notice" | "Document" | "BulkRetry" | "DocumentMigration" | "CapturedRequest" | "Settings" | "Member" | "ApiKey" | "RfcCall";
        BulkAction: "retry" | "replay" | "acknowledge" | "deliver";
        BulkDeliveryInput: {
            /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. */
            date_from?: string;
            /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. */
            date_to?: string;
            /** @description The destination. */
            destination_id: string;
            /**
             * @description Only count the documents.
             * @default false
             */
            dry_run?: boolean;
            /**
             * @description `source`: only documents that the source system has sent to the relay or changed here. Copies of the upstream are left out.
             * @constant
             */
            origin?: "source";
            /** @description Only documents of this repository (`repo_id`). */
            repo_id?: string;
        };
        BulkRetry: {
            attributes: components["schemas"]["BulkRetryAttributes"];
            id: string;
            /** @constant */
            type: "bulk_retry";
        };
        BulkRetryAttributes: {
            /** @description `retry`: failed deliveries. `replay`, `acknowledge`: the requests of discarded documents, or these documents. `deliver`: documents to a destination that was connected later. */
            action: components["schemas"]["BulkAction"];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            ended_at: string | null;
            filter: components["schemas"]["BulkRetryFilter"];
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted.
             */
            matched_deliveries: number;
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted, and the number grows if more are taken.
             */
            matched_documents: number;
            /**
             * Format: int64
             * @description Deliveries that were made again, that the documents of the replays have, or that were planned.
             */
            retried_deliveries: number;
            /**
             * Format: int64
             * @description Documents to which the action was applied.
             */
            retried_documents: number;
            /**
             * Format: int64
             * @description Documents to which it could not be applied, such as those whose request was refused again or has no body any more, or that the filter of the connection passes over.
             */
            skipped_documents: number;
            status: components["schemas"]["BulkRetryStatus"];
        };
        BulkRetryFilter: {
            /** Format: date-time */
            date_from?: string;
            /** Format: date-time */
            date_to?: string;
            destination_id?: string;
            error_code?: string;
            /** @constant */
            origin?: "source";
            repo_id?: string;
        };
        BulkRetryInput: {
            /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. */
            date_from?: string;
            /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. */
            date_to?: string;
            /** @description Only deliveries to this destination. */
            destination_id?: string;
            /**
             * @description Only count what would be retried.
             * @default false
             */
            dry_run?: boolean;
            /** @description Only deliveries whose last error has this code; `none` if the error is not one of an attempt. */
            error_code?: string;
            /** @description Only documents of this repository (`repo_id`). */
            repo_id?: string;
            /**
             * @description The status filter of the document list. Only `failed` is accepted, which is also the default.
             * @constant
             */
            status?: "failed";
        };
        BulkRetryList: {
            data: components["schemas"]["BulkRetry"][];
            meta: components["schemas"]["PageMeta"];
        };
        BulkRetryStatus: "running" | "completed" | "cancelled";
        CapturedRequest: {
            attributes: components["schemas"]["CapturedRequestAttributes"];
            id: string;
            /** @constant */
            type: "captured_request";
        };
        CapturedRequestAttributes: {
            channel: components["schemas"]["Channel"];
            /** Format: date-time */
            created_at: string;
            /** @description The documents that the request created. */
            document_ids: string[];
            /** Format: int64 */
            duration_ms: number;
            /** @description The code of the error that the request was answered with. Null if it has none. */
            error_code: string | null;
            http_method: string;
            query_string: string;
            /** Format: date-time */
            request_at: string;
            request_body_truncated: boolean;
            /** @description Why the body is not stored. Null if it is not truncated. */
            request_body_truncation_reason: components["schemas"]["TruncationReason"] | null;
            /** Format: int64 */
            request_content_length: number;
            /** @description Empty if the request had no Content-Type. */
            request_content_type: string;
            /** Format: date-time */
            response_at: string;
            response_body_truncated: boolean;
            /** @description Why the body is not stored. Null if it is not truncated. */
            response_body_truncation_reason: components["schemas"]["TruncationReason"] | null;
            /** Format: int64 */
            response_content_length: number;
            /** @description Empty if the response had no Content-Type. */
            response_content_type: string;
            source_ip: string;
            /** Format: int64 */
            status_code: number;
            uri: string;
            workspace_id: string;
        };
        CapturedRequestList: {
            data: components["schemas"]["CapturedRequest"][];
            meta: components["schemas"]["CursorMeta"];
        };
        Certificate: {
            attributes: components["schemas"]["CertificateAttributes"];
            id: string;
            /** @constant */
            type: "certificate";
        };
        CertificateAttributes: {
            auth_id: string;
            fingerprint_sha1: string;
            fingerprint_sha256: string;
            issuer: string;
            key_algorithm: string;
            /** Format: int64 */
            key_bits: number | null;
            /** Format: date-time */
            received_at: string;
            serial_number: string;
            status: components["schemas"]["ActivityStatus"];
            subject: string;
            /** Format: date-time */
            updated_at: string;
            /** Format: date-time */
            valid_from: string;
            /** Format: date-time */
            valid_to: string;
            /** @description Conditions that an operator should know. Signatures are accepted nevertheless. */
            warnings: components["schemas"]["CertificateWarning"][];
        };
        CertificateChange: {
            /** @description Only signatures made with an active certificate are accepted. */
            status: components["schemas"]["ActivityStatusInput"];
        };
        CertificateInput: {
            /** @description The name under which the source system signs (`authId`). */
            auth_id: string;
            /** @description The certificate as PEM, or as base64 of DER or PKCS #7. */
            certificate: string;
            /**
             * @description Only signatures made with an active certificate are accepted.
             * @default inactive
             */
            status?: components["schemas"]["ActivityStatusInput"];
        };
        CertificateList: {
            data: components["schemas"]["Certificate"][];
            meta: components["schemas"]["PageMeta"];
        };
        CertificateReceivedData: {
            auth_id: string;
            certificate_id: string;
            fingerprint_sha256: string;
            repository_id: string;
            subject: string;
        };
        CertificateReceivedEvent: {
            data: components["schemas"]["CertificateReceivedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "certificate.received";
        };
        CertificateResponse: {
            data: components["schemas"]["Certificate"];
        };
        CertificateWarning: {
            /** @description `short_key`: the key is shorter than recommended. `md5`: the certificate is signed with MD5. `expired`: its validity has ended. */
            code: components["schemas"]["CertificateWarningCode"];
            /** @description What the condition means. */
            message: string;
        };
        CertificateWarningCode: "short_key" | "md5" | "expired";
        Channel: "receiver" | "bridge";
        /** @enum {string} */
        ChannelInput: "receiver" | "bridge";
        CircuitState: "closed" | "open" | "half_open";
        Connection: {
            /** Format: date-time */
            created_at: string;
            destinations: components["schemas"]["ConnectionDestination"][];
            /**
             * Format: int64
             * @description Deliveries that the connection holds, counted up to 10000.
             */
            held_deliveries: number;
            id: string;
            is_active: boolean;
            name: string;
            repositories: components["schemas"]["ConnectionRepository"][];
            settings: components["schemas"]["ConnectionSettings"];
            /** Format: date-time */
            updated_at: string;
        };
        ConnectionChange: {
            /** @description The ids of all destinations to which the connection forwards documents. */
            destination_ids?: string[];
            /** @description An inactive connection holds the documents that arrive. */
            is_active?: boolean;
            /** @description The display name. */
            name?: string;
            /** @description The ids of all repositories from which the connection forwards documents. */
            repository_ids?: string[];
            /** @description The settings of the connection: `on_resume`, `path_template` (docs/path-templates.md explains its placeholders), `properties`, `filter`. */
            settings?: components["schemas"]["ConnectionSettingsInput"];
        };
        ConnectionDestination: {
            id: string;
            name: string;
            type: components["schemas"]["ConnectorType"];
        };
        ConnectionFilter: {
            comp_ids?: string[];
            content_types?: string[];
            /** @description Values of business data, by the names of the fields: a text, or several of which one has to fit */
            fields?: {
                [key: string]: string | string[];
            };
            /** Format: int64 */
            max_bytes?: number;
            /** Format: int64 */
            min_bytes?: number;
        };
        ConnectionFilterInput: {
            comp_ids?: string[];
            content_types?: string[];
            /** @description Values of business data, by the names of the fields: a text, or several of which one has to fit */
            fields?: {
                [key: string]: string | string[];
            };
            /** Format: int64 */
            max_bytes?: number;
            /** Format: int64 */
            min_bytes?: number;
        };
        ConnectionInput: {
            /** @description The ids of all destinations to which the connection forwards documents. */
            destination_ids: string[];
            /**
             * @description An inactive connection holds the documents that arrive.
             * @default true
             */
            is_active?: boolean;
            /** @description The display name. */
            name: string;
            /** @description The ids of all repositories from which the connection forwards documents. */
            repository_ids: string[];
            /** @description The settings of the connection: `on_resume`, `path_template` (docs/path-templates.md explains its placeholders), `properties`, `filter`. */
            settings?: components["schemas"]["ConnectionSettingsInput"];
        };
        ConnectionList: {
            data: components["schemas"]["Connection"][];
            meta?: components["schemas"]["PageMeta"];
        };
        ConnectionPreview: {
            documents: components["schemas"]["PreviewedDocument"][];
        };
        ConnectionPreviewInput: {
            /** @description The ids of the repositories from which the connection would forward documents. */
            repository_ids: string[];
            /** @description The settings of the connection: `on_resume`, `path_template` (docs/path-templates.md explains its placeholders), `properties`, `filter`. */
            settings?: components["schemas"]["ConnectionSettingsInput"];
        };
        ConnectionPreviewResponse: {
            data: components["schemas"]["ConnectionPreview"];
        };
        ConnectionRepository: {
            description: string;
            id: string;
            repo_id: string;
        };
        ConnectionResponse: {
            data: components["schemas"]["Connection"];
        };
        ConnectionSettings: {
            filter?: components["schemas"]["ConnectionFilter"];
            on_resume?: components["schemas"]["OnResume"];
            path_template?: string;
            properties?: {
                [key: string]: string;
            };
        };
        ConnectionSettingsInput: {
            /** @description Forward only documents that meet these conditions */
            filter?: components["schemas"]["ConnectionFilterInput"];
            /**
             * @description Deliveries held while the connection was inactive: `forward` releases them when it is activated, `skip` keeps them held
             * @default forward
             */
            on_resume?: components["schemas"]["OnResumeInput"];
            /**
             * @description Path of a document below the prefix of the destination. Placeholders: {repo_id}, {doc_id}, {comp_id}, {yyyy}, {mm}, {dd}, {erp_object_type}, {erp_object_id}, {ar_object}, {ext}, and {meta.NAME} for a field of an enrichment
             * @default {repo_id}/{doc_id}/{comp_id}
             */
            path_template?: string;
            /** @description What is written beside each document at its destination, by name: object tags, columns, properties or a file. A value has the placeholders of a path template. A property is left out until all of them are known */
            properties?: {
                [key: string]: string;
            };
        };
        ConnectorType: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook" | "directory" | "content-server";
        ConnectorTypeDescription: {
            attributes: components["schemas"]["ConnectorTypeDescriptionAttributes"];
            id: string;
            /** @constant */
            type: "connector_type";
        };
        ConnectorTypeDescriptionAttributes: {
            /**
             * @description Keys of `config` whose change needs the credentials again.
             * @example [
             *       "endpoint",
             *       "ca_certificate"
             *     ]
             */
            bound_keys: string[];
            /** @description True if business data that is found after the delivery is brought to the copy. */
            brings_late_data: boolean;
            /** @description The JSON Schema of `config`, with labels (`title`), descriptions and defaults. */
            config_schema: {
                [key: string]: unknown;
            };
            /** @description The JSON Schema of `credentials`. A secret has `writeOnly: true`. */
            credentials_schema: {
                [key: string]: unknown;
            };
            /** @description A plausible `config`. Its values are fictitious. */
            example_config: {
                [key: string]: unknown;
            };
            /** @description Plausible `credentials`. Their values are fictitious. */
            example_credentials: {
                [key: string]: unknown;
            };
            /** @description True if the connection can have properties written beside the document. */
            has_properties: boolean;
            /** @description False if this installation allows no destination of this type. */
            is_available: boolean;
            /** @description True if each delivery is a message of its own. Otherwise, a later document at the same path replaces an earlier one. */
            is_message: boolean;
            /** @description True if notifications can use a destination of this type. */
            sends_notices: boolean;
        };
        ConnectorTypeDescriptionList: {
            data: components["schemas"]["ConnectorTypeDescription"][];
        };
        /** @enum {string} */
        ConnectorTypeInput: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook" | "directory" | "content-server";
        /** @description All deliveries to the destination, by their present status, whenever they got it. */
        CurrentDeliveryCounts: {
            /** Format: int64 */
            cancelled: number;
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            held: number;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            retrying: number;
        };
        CursorMeta: {
            next_cursor: string | null;
            /** Format: int64 */
            per_page: number;
        };
        DeletedConnection: {
            message: string;
        };
        Delivery: {
            /** Format: int64 */
            attempts: number;
            /** Format: date-time */
            delivered_at: string | null;
            destination_id: string;
            destination_name: string;
            /** @description What ended a failed or cancelled delivery. `permanent_error`: no retry can fix the error. `max_retries`, `retry_ttl_seconds`: this retry setting was the limit. `workflow_cancelled`, `workflow_terminated`: a person has ended the workflow in Temporal. `destination_deleted`, `connection_deleted`, `document_erased`: this was deleted. `connection_changed`: the connection does not lead to the destination any more. `content_removed`: the content is missing, and nobody has erased it. */
            ended_by: components["schemas"]["DeliveryEnd"] | null;
            /** @description The error of the last attempt, or null if it succeeded. `code` is null if a person has ended the workflow in Temporal. */
            last_error: components["schemas"]["DeliveryProblem"] | null;
            /**
             * Format: date-time
             * @description When the next attempt of a `retrying` delivery is due, or the next trial of the circuit that the delivery waits for; otherwise null. It is past while the attempt is under way.
             */
            next_attempt_at: string | null;
            status: components["schemas"]["DeliveryStatus"];
            /**
             * Format: date-time
             * @description When the delivery got its status.
             */
            status_since: string;
            /** @description Why an open delivery makes no attempt at the moment. `attempt`: the next one is due at `next_attempt_at`. `slot`: it waits for a slot of the destination or a place in a worker. `circuit`: the next trial of the destination is due at `next_attempt_at`. `connection`: this connection is inactive. `data`: its filter needs business data that is not known yet. `paused`: an operator has paused it in Temporal. `worker`: an attempt is due, and no worker has begun with it. Null while an attempt is under way, and after the end. */
            waiting_for: components["schemas"]["Wait"] | null;
        };
        DeliveryAttempt: {
            attributes: components["schemas"]["DeliveryAttemptAttributes"];
            id: string;
            /** @constant */
            type: "delivery_attempt";
        };
        DeliveryAttemptAttributes: {
            answer: {
                [key: string]: unknown;
            } | null;
            /** Format: int64 */
            bytes_sent: number | null;
            destination_id: string;
            destination_name: string;
            /** Format: int64 */
            duration_ms: number;
            error: components["schemas"]["AttemptError"] | null;
            /** Format: int64 */
            number: number;
            outcome: components["schemas"]["AttemptOutcome"];
            /** Format: date-time */
            started_at: string;
        };
        DeliveryAttemptList: {
            data: components["schemas"]["DeliveryAttempt"][];
            meta: components["schemas"]["PageMeta"];
        };
        DeliveryCancelledData: {
            /**
             * Format: int64
             * @description Attempts so far.
             */
            attempts: number;
            comp_id: string;
            destination_id: string;
            doc_id: string;
            document_id: string;
            /** @description What ended the delivery, as in `deliveries[].ended_by` of the document. */
            ended_by: string | null;
            /** @description The code of the last error of an attempt. */
            error_code: string | null;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DeliveryCancelledEvent: {
            data: components["schemas"]["DeliveryCancelledData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "delivery.cancelled";
        };
        /** @description Deliveries that got their present status in the range, by that status. */
        DeliveryCounts: {
            /** Format: int64 */
            cancelled: number;
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            held: number;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            retrying: number;
        };
        DeliveryDeliveredData: {
            /**
             * Format: int64
             * @description Attempts so far.
             */
            attempts: number;
            comp_id: string;
            destination_id: string;
            doc_id: string;
            document_id: string;
            /** @description Where the destination stored it, as it reported. */
            location: string | null;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DeliveryDeliveredEvent: {
            data: components["schemas"]["DeliveryDeliveredData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "delivery.delivered";
        };
        DeliveryEnd: "permanent_error" | "max_retries" | "retry_ttl_seconds" | "workflow_cancelled" | "workflow_terminated" | "destination_deleted" | "connection_deleted" | "connection_changed" | "document_erased" | "content_removed";
        DeliveryFailedData: {
            /**
             * Format: int64
             * @description Attempts so far.
             */
            attempts: number;
            comp_id: string;
            destination_id: string;
            doc_id: string;
            document_id: string;
            /** @description What ended the delivery, as in `deliveries[].ended_by` of the document. */
            ended_by: string | null;
            /** @description The code of the last error of an attempt. */
            error_code: string | null;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DeliveryFailedEvent: {
            data: components["schemas"]["DeliveryFailedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "delivery.failed";
        };
        DeliveryProblem: {
            code: string | null;
            message: string;
        };
        DeliveryStatus: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
        /** @enum {string} */
        DeliveryStatusInput: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
        Destination: {
            attributes: components["schemas"]["DestinationAttributes"];
            id: string;
            /** @constant */
            type: "destination";
        };
        DestinationAttributes: {
            /** @description `open`: deliveries wait, because the last attempts failed. `half_open`: one delivery tries the target. `closed` otherwise. */
            circuit: components["schemas"]["CircuitState"];
            /**
             * Format: date-time
             * @description When `circuit` changed last.
             */
            circuit_since: string | null;
            /** @description Path, query and header values of a webhook are masked for viewers. */
            config: {
                [key: string]: unknown;
            };
            connector_type: components["schemas"]["ConnectorType"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description When the credentials expire, if they contain a client certificate. The incident `certificate.expiring` announces it.
             */
            credentials_expire_at: string | null;
            /**
             * Format: int64
             * @description Attempts that have failed since the last success.
             */
            failed_attempts: number;
            /** Format: date-time */
            last_delivered_at: string | null;
            /** @description The error of the last attempt that failed. Null once an attempt or a test has succeeded since. */
            last_error: string | null;
            /**
             * Format: date-time
             * @description When `last_error` occurred.
             */
            last_error_at: string | null;
            /** @description The code of `last_error`. */
            last_error_code: string | null;
            name: string;
            /**
             * Format: date-time
             * @description When the next delivery may try the target, if `circuit` is `open`.
             */
            next_trial_at: string | null;
            /** @description The way in which the credentials sign in, by its name in `x-sign-in` of their schema, such as `sas_token`. Null if the connector type has only one. */
            sign_in: string | null;
            /**
             * Format: int64
             * @description Deliveries that may run at this destination at a time: `max_concurrent_deliveries` of the config, or the default of the installation.
             */
            slots: number;
            /**
             * Format: int64
             * @description Deliveries that run at this destination at present.
             */
            slots_in_use: number;
            status: components["schemas"]["DestinationStatus"];
            /** Format: date-time */
            updated_at: string;
            /** @description Conditions that an operator should know. */
            warnings: components["schemas"]["DestinationWarning"][];
        };
        DestinationChange: {
            /**
             * @description Merged into the current config; null removes a key. The result must match the schema of the connector: DestinationConfigObjstore, DestinationConfigBlob, DestinationConfigTeamsite, DestinationConfigDrive, DestinationConfigSftp, DestinationConfigEmail, DestinationConfigWebhook, DestinationConfigDirectory, DestinationConfigContentServer.
             * @example {
             *       "max_concurrent_deliveries": 4
             *     }
             */
            config?: {
                [key: string]: unknown;
            };
            /** @description Replaces the current credentials. Must match the schema of the connector. */
            credentials?: components["schemas"]["DestinationCredentialsObjstore"] | components["schemas"]["DestinationCredentialsBlob"] | components["schemas"]["DestinationCredentialsTeamsite"] | components["schemas"]["DestinationCredentialsDrive"] | components["schemas"]["DestinationCredentialsSftp"] | components["schemas"]["DestinationCredentialsEmail"] | components["schemas"]["DestinationCredentialsWebhook"] | components["schemas"]["DestinationCredentialsContentServer"];
            /** @description The display name. */
            name?: string;
        };
        /**
         * @example {
         *       "account_url": "https://acmedocuments.blob.core.windows.net",
         *       "container": "invoices",
         *       "prefix": "sap/"
         *     }
         */
        DestinationConfigBlob: {
            /**
             * Format: uri
             * @description Address of the storage account: https://NAME.blob.core.windows.net, or the address in another cloud (usgovcloudapi.net, chinacloudapi.cn), of a private endpoint, or of an emulator (http://HOST:PORT/NAME)
             */
            account_url: string;
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /** @description Container; it must exist */
            container: string;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description Prepended to every name unchanged; a folder ends with a slash
             * @default
             */
            prefix?: string;
        };
        /**
         * @example {
         *       "url": "https://archive.example.com:1090/ContentServer/ContentServer.dll",
         *       "repository": "Z1"
         *     }
         */
        DestinationConfigContentServer: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /**
             * @description Id of a document there. source: the `doc_id` that the source system has given, so that its links stay valid; relay: the id of the document in this relay, for a server that must not get two documents with one `doc_id`
             * @default source
             * @enum {string}
             */
            document_ids?: "source" | "relay";
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /** @description Content repository there (`contRep`) */
            repository: string;
            /**
             * Format: uri
             * @description Address of the content server, with the HTTP script and without a query, as the source system has it
             */
            url: string;
        };
        /**
         * @example {
         *       "path": "/srv/archive/invoices"
         *     }
         */
        DestinationConfigDirectory: {
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /** @description Directory at which the file system of path is mounted. Nothing is written while nothing is mounted there. Without it, the relay stores here at the first success where that file system is mounted. / stands for any */
            mount_point?: string;
            /** @description Folder to store documents in, as an absolute path on the workers; it must exist, folders below it are created */
            path: string;
        };
        /**
         * @example {
         *       "folder_id": "1dJ8kQxY3mVbT5nR7wZpL2sGhC9uFaEoK"
         *     }
         */
        DestinationConfigDrive: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /** @description Folder to store documents in: the last part of its address, https://drive.google.com/drive/folders/FOLDER_ID. A shared drive's own id is a folder too */
            folder_id: string;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /** @description User in whose name documents are stored, by domain-wide delegation. The user then owns the files, which count against their storage */
            subject?: string;
        };
        /**
         * @example {
         *       "host": "smtp.example.com",
         *       "port": 587,
         *       "from": "relay@example.com",
         *       "to": [
         *         "invoices@example.com"
         *       ]
         *     }
         */
        DestinationConfigEmail: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /** @description Further recipients, in the same form */
            cc?: string | string[];
            /** @description Sender: an address without a display name */
            from: string;
            /** @description Host name or address of the SMTP server */
            host: string;
            /**
             * Format: int64
             * @description A larger document is not attached; the mail contains a link to it. An attachment is a third larger in the mail, because of base64
             * @default 10485760
             */
            max_attachment_bytes?: number;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /** @description TCP port. Default: 587; 465 with tls implicit; 25 with tls none */
            port?: number;
            /**
             * @description Subject. Placeholders: repo_id, doc_id, comp_id, yyyy, mm, dd, erp_object_type, erp_object_id, ar_object, ext, file_name
             * @default Document {doc_id} ({comp_id}) from {repo_id}
             */
            subject_template?: string;
            /**
             * @description starttls: the connection switches to TLS before login and mail; implicit: the connection starts with TLS; none: no encryption, and credentials are sent to allowed private addresses only
             * @default starttls
             * @enum {string}
             */
            tls?: "starttls" | "implicit" | "none";
            /** @description Recipient, or an array of up to 100 */
            to: string | string[];
        };
        /**
         * @example {
         *       "bucket": "acme-documents",
         *       "region": "eu-central-1",
         *       "prefix": "invoices/"
         *     }
         */
        DestinationConfigObjstore: {
            /** @description Bucket; it must exist */
            bucket: string;
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /**
             * Format: uri
             * @description Address of a store other than AWS, http or https
             */
            endpoint?: string;
            /** @description Key for aws:kms. Default: the account's default key */
            kms_key_id?: string;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description Bucket in the path instead of the host name, as most stores other than AWS require
             * @default false
             */
            path_style?: boolean;
            /**
             * @description Prepended to every key unchanged; a folder ends with a slash
             * @default
             */
            prefix?: string;
            /** @description Region of the bucket, for example eu-central-1. Stores other than AWS often expect us-east-1 */
            region: string;
            /**
             * @description Encryption requested from the store. Default: the bucket's
             * @enum {string}
             */
            server_side_encryption?: "AES256" | "aws:kms" | "aws:kms:dsse";
            /** @description Storage class of new objects, for example STANDARD_IA. Default: the bucket's */
            storage_class?: string;
        };
        /**
         * @example {
         *       "host": "sftp.example.com",
         *       "port": 22,
         *       "directory": "incoming/invoices",
         *       "write": "rename",
         *       "host_key_sha256": "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLmKgF3gg2VqVhF3mI"
         *     }
         */
        DestinationConfigSftp: {
            /**
             * @description Folder to store documents in; it must exist, folders below it are created. A relative path starts at the folder that the account has after login
             * @default .
             */
            directory?: string;
            /** @description Host name or address */
            host: string;
            /** @description Fingerprint of the host key, as `ssh-keygen -lf` prints it (SHA256:...) or in hex. Without it, the relay trusts the key that the server presents at the first success, and stores its fingerprint here */
            host_key_sha256?: string;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description TCP port
             * @default 22
             */
            port?: number;
            /**
             * @description How a file is written. rename: under a hidden name, then renamed; in_place: under its final name, for a server that takes a file when it is closed, or permits no rename. Programs that read the folder may then see a part of a document
             * @default rename
             * @enum {string}
             */
            write?: "rename" | "in_place";
        };
        /**
         * @example {
         *       "site_url": "https://contoso.sharepoint.com/sites/Finance",
         *       "document_library": "Documents",
         *       "folder": "Incoming/SAP"
         *     }
         */
        DestinationConfigTeamsite: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /**
             * @description Microsoft cloud that the tenant belongs to: usgov is GCC High, china is 21Vianet; GCC belongs to global
             * @default global
             * @enum {string}
             */
            cloud?: "global" | "usgov" | "usgov-dod" | "china";
            /** @description Name of the document library as the site shows it, for example Documents; it must exist. Not case-sensitive */
            document_library: string;
            /**
             * @description Folder of the library to store documents in, for example Incoming/SAP; created if it does not exist
             * @default
             */
            folder?: string;
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * Format: uri
             * @description Address of the site itself, for example https://contoso.sharepoint.com/sites/Finance, without a library, page or query after it
             */
            site_url: string;
        };
        /**
         * @example {
         *       "url": "https://dms.example.com/documents",
         *       "method": "POST",
         *       "format": "multipart"
         *     }
         */
        DestinationConfigWebhook: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /**
             * @description Form of the request body: raw is the document's own bytes, multipart a form with metadata and file, json an object with the content in base64
             * @default raw
             * @enum {string}
             */
            format?: "raw" | "multipart" | "json";
            /** @description Up to 50 further headers, sent unchanged. Headers that the relay or the HTTP client sets are refused, and so are names that sound like a secret: put a secret into the credentials, which are never shown */
            headers?: {
                [key: string]: string;
            };
            /** @description Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description HTTP method
             * @default POST
             * @enum {string}
             */
            method?: "POST" | "PUT";
            /**
             * @description If true, requests carry the header traceparent while the relay records traces, so that the target can continue the trace
             * @default false
             */
            send_traceparent?: boolean;
            /**
             * @description Signatures that the secret of credentials makes. standard_webhooks: over the bytes of the body; http_message: over the digest of the body and over headers (RFC 9421), so that a body of the format raw is read once instead of twice; both
             * @default both
             * @enum {string}
             */
            signatures?: "both" | "standard_webhooks" | "http_message";
            /**
             * Format: uri
             * @description Address to send documents to, http or https, without user name and password
             */
            url: string;
        };
        DestinationConnection: {
            id: string;
            name: string;
            source_name: string;
            source_repo_id: string;
            status: components["schemas"]["ActivityStatus"];
        };
        /**
         * @example {
         *       "account_key": "ZmljdGl0aW91cy1rZXktb2YtYW4tZXhhbXBsZS1hY2NvdW50LW5vdC1hLXJlYWwtb25l"
         *     }
         */
        DestinationCredentialsBlob: {
            /**
             * Format: password
             * @description Key of the storage account. It needs the account name in the host of account_url; with a custom domain use another method
             */
            account_key?: string;
            /** @description Application (client) id */
            client_id?: string;
            /**
             * Format: password
             * @description Value of a client secret, not its id
             */
            client_secret?: string;
            /**
             * Format: password
             * @description Shared access signature for the container: the part of a SAS address after the question mark
             */
            sas_token?: string;
            /** @description Directory (tenant) id, or a domain of the tenant */
            tenant_id?: string;
        };
        /** @example {} */
        DestinationCredentialsContentServer: {
            /** @description Name of the certificate at the content server: the `authId` with which it was sent there, such as `CN=RELAY` */
            auth_id?: string;
            /** @description PEM certificate that is active in the repository there. It is not sent with a document */
            certificate?: string;
            /**
             * Format: password
             * @description PEM private key of certificate, without a passphrase: RSA, DSA or EC. It signs the URL of every request
             */
            private_key?: string;
        };
        /** @example {} */
        DestinationCredentialsDirectory: Record<string, never>;
        /**
         * @example {
         *       "service_account": {
         *         "type": "service_account",
         *         "client_email": "document-relay@acme-archive.iam.gserviceaccount.com",
         *         "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n",
         *         "private_key_id": "4f2c9d1e8b7a6053",
         *         "token_uri": "https://oauth2.googleapis.com/token"
         *       }
         *     }
         */
        DestinationCredentialsDrive: {
            /** @description Key file of a service account, as the JSON object that it contains; its other keys are ignored */
            service_account: components["schemas"]["DestinationCredentialsDriveServiceAccount"];
        };
        /**
         * Format: password
         * @description Key file of a service account, as the JSON object that it contains; its other keys are ignored
         */
        DestinationCredentialsDriveServiceAccount: {
            /** @description Address of the account */
            client_email: string;
            /**
             * Format: password
             * @description Private key of the account
             */
            private_key: string;
            /** @description Id of that key */
            private_key_id?: string;
            /**
             * Format: uri
             * @description Address that issues access tokens
             * @default https://oauth2.googleapis.com/token
             */
            token_uri?: string;
            /**
             * @description Kind of account that the key file is for
             * @constant
             */
            type: "service_account";
        };
        /**
         * @example {
         *       "username": "relay@example.com",
         *       "password": "correct-horse-battery-staple"
         *     }
         */
        DestinationCredentialsEmail: {
            /** @description Audience of the token, if the OAuth2 server needs one */
            audience?: string;
            /** @description Client id that the OAuth2 server knows */
            client_id?: string;
            /**
             * Format: password
             * @description Secret of the client
             */
            client_secret?: string;
            /**
             * Format: password
             * @description Password of the account
             */
            password?: string;
            /** @description Scope of the token, if the OAuth2 server needs one */
            scope?: string;
            /** @description Directory (tenant) id, or a domain of the tenant: Microsoft Entra issues the tokens, for Exchange Online */
            tenant_id?: string;
            /**
             * @description How client_id and client_secret are sent to token_url: in the header or in the form. Default: client_secret_basic
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post";
            /** @description PEM certificate of the authority that signed the certificate of token_url. Trusted instead of the public authorities */
            token_ca_certificate?: string;
            /**
             * Format: uri
             * @description Address at which an OAuth2 server issues tokens to clients (client credentials grant), https only
             */
            token_url?: string;
            /** @description Account, if the server requires a login: with tokens, the mailbox that the client may send as */
            username?: string;
        };
        /**
         * @example {
         *       "access_key_id": "AKIAIOSFODNN7EXAMPLE",
         *       "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
         *     }
         */
        DestinationCredentialsObjstore: {
            /** @description Access key of an account that may write to the bucket */
            access_key_id: string;
            /**
             * Format: password
             * @description Secret of the access key
             */
            secret_access_key: string;
            /**
             * Format: password
             * @description Session token of temporary credentials
             */
            session_token?: string;
        };
        /**
         * @example {
         *       "username": "relay",
         *       "password": "correct-horse-battery-staple"
         *     }
         */
        DestinationCredentialsSftp: {
            /**
             * Format: password
             * @description Passphrase of the private key
             */
            passphrase?: string;
            /**
             * Format: password
             * @description Password of the account, if it has no key. Also used if the server asks for it interactively (keyboard-interactive)
             */
            password?: string;
            /**
             * Format: password
             * @description Private key in OpenSSH or PEM form
             */
            private_key?: string;
            /** @description Account */
            username: string;
        };
        /**
         * @example {
         *       "tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47",
         *       "client_id": "11111111-2222-3333-4444-555555555555",
         *       "client_secret": "fictitious~client.secret-of-an-example"
         *     }
         */
        DestinationCredentialsTeamsite: {
            /** @description Application (client) id */
            client_id: string;
            /**
             * Format: password
             * @description Value of a client secret, not its id
             */
            client_secret: string;
            /** @description Directory (tenant) id, or a domain of the tenant */
            tenant_id: string;
        };
        /**
         * @example {
         *       "secret": "whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ=="
         *     }
         */
        DestinationCredentialsWebhook: {
            /** @description Audience of the token, if the OAuth2 server needs one */
            audience?: string;
            /**
             * Format: password
             * @description Sent as Authorization: Bearer
             */
            bearer_token?: string;
            /** @description PEM certificate with which the relay identifies itself to a target that demands one, followed by the intermediate ones */
            client_certificate?: string;
            /** @description Client id that the OAuth2 server knows */
            client_id?: string;
            /**
             * Format: password
             * @description PEM private key of client_certificate, without a passphrase
             */
            client_key?: string;
            /**
             * Format: password
             * @description Secret of the client
             */
            client_secret?: string;
            /** @description Name of a header that contains a secret */
            header_name?: string;
            /**
             * Format: password
             * @description Value of the header header_name
             */
            header_value?: string;
            /**
             * Format: password
             * @description Password that goes with username
             */
            password?: string;
            /**
             * Format: password
             * @description Adds a second signature while receivers change to the new secret
             */
            previous_secret?: string;
            /** @description Scope of the token, if the OAuth2 server needs one */
            scope?: string;
            /**
             * Format: password
             * @description Signs every request: whsec_ and base64, or any text, whose UTF-8 bytes are the key
             */
            secret?: string;
            /**
             * @description How client_id and client_secret are sent to token_url: in the header or in the form. Default: client_secret_basic
             * @enum {string}
             */
            token_auth_method?: "client_secret_basic" | "client_secret_post";
            /** @description PEM certificate of the authority that signed the certificate of token_url. Trusted instead of the public authorities */
            token_ca_certificate?: string;
            /**
             * Format: uri
             * @description Address at which an OAuth2 server issues tokens to clients (client credentials grant), https only
             */
            token_url?: string;
            /** @description Sent together with password as Authorization: Basic */
            username?: string;
        };
        DestinationInput: components["schemas"]["DestinationInputObjstore"] | components["schemas"]["DestinationInputBlob"] | components["schemas"]["DestinationInputTeamsite"] | components["schemas"]["DestinationInputDrive"] | components["schemas"]["DestinationInputSftp"] | components["schemas"]["DestinationInputEmail"] | components["schemas"]["DestinationInputWebhook"] | components["schemas"]["DestinationInputDirectory"] | components["schemas"]["DestinationInputContentServer"];
        DestinationInputBlob: {
            config: components["schemas"]["DestinationConfigBlob"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "blob";
            credentials: components["schemas"]["DestinationCredentialsBlob"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputContentServer: {
            config: components["schemas"]["DestinationConfigContentServer"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "content-server";
            credentials: components["schemas"]["DestinationCredentialsContentServer"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputDirectory: {
            config: components["schemas"]["DestinationConfigDirectory"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "directory";
            credentials: components["schemas"]["DestinationCredentialsDirectory"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputDrive: {
            config: components["schemas"]["DestinationConfigDrive"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "drive";
            credentials: components["schemas"]["DestinationCredentialsDrive"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputEmail: {
            config: components["schemas"]["DestinationConfigEmail"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "email";
            credentials: components["schemas"]["DestinationCredentialsEmail"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputObjstore: {
            config: components["schemas"]["DestinationConfigObjstore"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "objstore";
            credentials: components["schemas"]["DestinationCredentialsObjstore"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputSftp: {
            config: components["schemas"]["DestinationConfigSftp"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "sftp";
            credentials: components["schemas"]["DestinationCredentialsSftp"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputTeamsite: {
            config: components["schemas"]["DestinationConfigTeamsite"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "teamsite";
            credentials: components["schemas"]["DestinationCredentialsTeamsite"];
            /** @description The display name. */
            name: string;
        };
        DestinationInputWebhook: {
            config: components["schemas"]["DestinationConfigWebhook"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "webhook";
            credentials: components["schemas"]["DestinationCredentialsWebhook"];
            /** @description The display name. */
            name: string;
        };
        DestinationList: {
            data: components["schemas"]["Destination"][];
            meta: components["schemas"]["PageMeta"];
        };
        DestinationResponse: {
            data: components["schemas"]["Destination"];
        };
        DestinationStats: {
            attributes: components["schemas"]["DestinationStatsAttributes"];
            id: string;
            /** @constant */
            type: "destination_stats";
        };
        DestinationStatsAttributes: {
            current_deliveries: components["schemas"]["CurrentDeliveryCounts"];
            destination_name: string;
            /** @description The oldest `pending` or `retrying` delivery at present. */
            oldest_delivery: components["schemas"]["OldestDestinationDelivery"] | null;
            /** @description Every hour or day of the range, as in the statistics of the workspace. */
            series: components["schemas"]["DestinationStatsPeriod"][];
        };
        DestinationStatsList: {
            data: components["schemas"]["DestinationStats"][];
            meta: components["schemas"]["PageMeta"];
        };
        DestinationStatsPeriod: {
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            failed: number;
            /** Format: date-time */
            start: string;
        };
        DestinationStatus: "connected" | "failing";
        DestinationTest: components["schemas"]["DestinationTestObjstore"] | components["schemas"]["DestinationTestBlob"] | components["schemas"]["DestinationTestTeamsite"] | components["schemas"]["DestinationTestDrive"] | components["schemas"]["DestinationTestSftp"] | components["schemas"]["DestinationTestEmail"] | components["schemas"]["DestinationTestWebhook"] | components["schemas"]["DestinationTestDirectory"] | components["schemas"]["DestinationTestContentServer"];
        DestinationTestBlob: {
            config: components["schemas"]["DestinationConfigBlob"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "blob";
            credentials: components["schemas"]["DestinationCredentialsBlob"];
        };
        DestinationTestChange: {
            /**
             * @description Merged into the current config; null removes a key. The result must match the schema of the connector: DestinationConfigObjstore, DestinationConfigBlob, DestinationConfigTeamsite, DestinationConfigDrive, DestinationConfigSftp, DestinationConfigEmail, DestinationConfigWebhook, DestinationConfigDirectory, DestinationConfigContentServer.
             * @example {
             *       "max_concurrent_deliveries": 4
             *     }
             */
            config?: {
                [key: string]: unknown;
            };
            /** @description Replaces the current credentials. Must match the schema of the connector. */
            credentials?: components["schemas"]["DestinationCredentialsObjstore"] | components["schemas"]["DestinationCredentialsBlob"] | components["schemas"]["DestinationCredentialsTeamsite"] | components["schemas"]["DestinationCredentialsDrive"] | components["schemas"]["DestinationCredentialsSftp"] | components["schemas"]["DestinationCredentialsEmail"] | components["schemas"]["DestinationCredentialsWebhook"] | components["schemas"]["DestinationCredentialsContentServer"];
        };
        DestinationTestContentServer: {
            config: components["schemas"]["DestinationConfigContentServer"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "content-server";
            credentials: components["schemas"]["DestinationCredentialsContentServer"];
        };
        DestinationTestDirectory: {
            config: components["schemas"]["DestinationConfigDirectory"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "directory";
            credentials: components["schemas"]["DestinationCredentialsDirectory"];
        };
        DestinationTestDrive: {
            config: components["schemas"]["DestinationConfigDrive"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "drive";
            credentials: components["schemas"]["DestinationCredentialsDrive"];
        };
        DestinationTestEmail: {
            config: components["schemas"]["DestinationConfigEmail"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "email";
            credentials: components["schemas"]["DestinationCredentialsEmail"];
        };
        DestinationTestObjstore: {
            config: components["schemas"]["DestinationConfigObjstore"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "objstore";
            credentials: components["schemas"]["DestinationCredentialsObjstore"];
        };
        DestinationTestSftp: {
            config: components["schemas"]["DestinationConfigSftp"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "sftp";
            credentials: components["schemas"]["DestinationCredentialsSftp"];
        };
        DestinationTestTeamsite: {
            config: components["schemas"]["DestinationConfigTeamsite"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "teamsite";
            credentials: components["schemas"]["DestinationCredentialsTeamsite"];
        };
        DestinationTestWebhook: {
            config: components["schemas"]["DestinationConfigWebhook"];
            /**
             * @description The connector type. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            connector_type: "webhook";
            credentials: components["schemas"]["DestinationCredentialsWebhook"];
        };
        DestinationWarning: {
            /** @description `leads_back`: an address of the config has the origin of this relay. */
            code: components["schemas"]["DestinationWarningCode"];
            /** @description What the condition means, and how to end it. */
            message: string;
        };
        DestinationWarningCode: "leads_back";
        DiscardedDocumentsInput: {
            /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. */
            date_from?: string;
            /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. */
            date_to?: string;
            /**
             * @description Only count the documents.
             * @default false
             */
            dry_run?: boolean;
            /** @description The repository (`repo_id`) of the documents. */
            repo_id: string;
            /**
             * @description Only `discarded` is accepted, which is also the default.
             * @constant
             */
            status?: "discarded";
        };
        DiscardedGroup: {
            attributes: components["schemas"]["DiscardedGroupAttributes"];
            id: string;
            /** @constant */
            type: "discarded_group";
        };
        DiscardedGroupAttributes: {
            /** Format: int64 */
            documents: number;
            /** @description Whether a connection, active or not, leads from the repository to a destination now. */
            is_connected: boolean;
            /**
             * Format: date-time
             * @description When the last of these documents was received.
             */
            newest_at: string;
            repo_id: string;
            /** @description Null if the repository was deleted. */
            repository_id: string | null;
        };
        DiscardedGroupList: {
            data: components["schemas"]["DiscardedGroup"][];
            meta: components["schemas"]["PageMeta"];
        };
        Document: {
            attributes: components["schemas"]["DocumentAttributes"];
            id: string;
            /** @constant */
            type: "document";
        };
        DocumentAcknowledgedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentAcknowledgedEvent: {
            data: components["schemas"]["DocumentAcknowledgedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.acknowledged";
        };
        DocumentAppendedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
            /**
             * Format: int64
             * @description With what was appended.
             */
            size_bytes: number;
        };
        DocumentAppendedEvent: {
            data: components["schemas"]["DocumentAppendedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.appended";
        };
        DocumentAttributes: {
            /**
             * Format: date-time
             * @description When an operator acknowledged the failed or discarded document, or replayed the request of the discarded one.
             */
            acknowledged_at: string | null;
            comp_id: string;
            /** @description Whether the bytes are kept and can be downloaded. */
            content_retained: boolean;
            content_type: string;
            deliveries: components["schemas"]["Delivery"][];
            doc_id: string;
            /** @description The business object, if `include` asks for it. */
            metadata?: components["schemas"]["DocumentMetadata"];
            /** @description `source`: the source system has sent the document. `upstream`: the relay has fetched it from the content server that the source system used before. Such a document without deliveries is `delivered`. */
            origin: components["schemas"]["DocumentOrigin"];
            /** Format: date-time */
            received_at: string;
            repo_id: string;
            /** @description The captured request that contained the document. It may have been removed since. */
            request_id: string;
            /** Format: int64 */
            size_bytes: number;
            status: components["schemas"]["DocumentStatus"];
            /**
             * Format: date-time
             * @description When the document was replaced (by the source system, or by a newer copy of the upstream) or deleted. The source system does not read it any more; deliveries continue, and copies stay. The requests of the `doc_id` tell what the source system did.
             */
            superseded_at: string | null;
        };
        DocumentCounts: {
            /** Format: int64 */
            delivered: number;
            /** Format: int64 */
            discarded: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            retrying: number;
        };
        DocumentDeletedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentDeletedEvent: {
            data: components["schemas"]["DocumentDeletedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.deleted";
        };
        DocumentDeliveredData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentDeliveredEvent: {
            data: components["schemas"]["DocumentDeliveredData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.delivered";
        };
        DocumentDiscardedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            /** @description `no_connection` or `filter`. */
            reason: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentDiscardedEvent: {
            data: components["schemas"]["DocumentDiscardedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.discarded";
        };
        DocumentEnrichment: {
            /**
             * Format: int64
             * @description The number of tries.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When the calls are not repeated any more.
             */
            ends_at: string;
            /** @description The enrichment. It may have been deleted since. */
            enrichment_id: string;
            /** @description `pending`: the calls are repeated until `ends_at`. `complete`: every field was found that is not optional. `partial`: some were. `failed`: none was. Deliveries do not depend on it. */
            status: components["schemas"]["EnrichmentStatus"];
            steps: components["schemas"]["EnrichmentStepOutcome"][];
            /** Format: date-time */
            updated_at: string;
            /**
             * Format: date-time
             * @description When the deliveries start, if the enrichment is not complete earlier.
             */
            waits_until: string;
        };
        DocumentErasedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentErasedEvent: {
            data: components["schemas"]["DocumentErasedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.erased";
        };
        DocumentFailedData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentFailedEvent: {
            data: components["schemas"]["DocumentFailedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.failed";
        };
        DocumentList: {
            data: components["schemas"]["Document"][];
            meta: components["schemas"]["PageMeta"];
        };
        DocumentMetadata: {
            ar_object: string | null;
            erp_object_id: string | null;
            erp_object_type: string | null;
        };
        DocumentMetadataChange: {
            /** @description The document type in the source system. Null removes the value. */
            ar_object?: string | null;
            /** @description The key of the business object. Null removes the value. */
            erp_object_id?: string | null;
            /** @description The type of the business object, for example `BKPF`. Null removes the value. */
            erp_object_type?: string | null;
        };
        DocumentMetadataMessage: {
            data: components["schemas"]["LateDocumentData"];
            /**
             * Format: date-time
             * @description When it was found.
             */
            timestamp: string;
            /** @constant */
            type: "document.metadata";
        };
        DocumentMetadataUpdatedData: {
            /** @description `business_object` or `fields`. */
            changed: string;
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentMetadataUpdatedEvent: {
            data: components["schemas"]["DocumentMetadataUpdatedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.metadata_updated";
        };
        DocumentMigration: {
            attributes: components["schemas"]["DocumentMigrationAttributes"];
            id: string;
            /** @constant */
            type: "document_migration";
        };
        DocumentMigrationAttributes: {
            /**
             * Format: int64
             * @description Rows whose document was fetched and kept.
             */
            copied: number;
            /** Format: int64 */
            copied_bytes: number;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: int64
             * @description Rows whose document the upstream has and does not deliver whole.
             */
            damaged: number;
            /**
             * Format: int64
             * @description Rows whose document the source system has changed here, so that it was not fetched again.
             */
            different: number;
            /**
             * Format: int64
             * @description Null if there is no limit.
             */
            documents_per_minute: number | null;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: int64
             * @description Rows whose document is here as the upstream has it.
             */
            equal: number;
            /**
             * Format: int64
             * @description Rows whose document the relay does not accept, such as one that is too large.
             */
            failed: number;
            /**
             * Format: int64
             * @description Rows whose document the upstream has, of a migration that only checks.
             */
            found: number;
            /** @description The exports of link tables. */
            lists: components["schemas"]["LinkList"][];
            /**
             * Format: int64
             * @description Rows whose document neither has.
             */
            missing: number;
            /** @description `copy`: documents that are not here are fetched from the upstream. `check`: they are looked for only. */
            mode: components["schemas"]["DocumentMigrationMode"];
            repo_id: string;
            repository_id: string;
            /**
             * Format: int64
             * @description Rows of the repository in all lists.
             */
            rows: number;
            status: components["schemas"]["DocumentMigrationStatus"];
            /** @description Why it does not advance, such as an upstream that does not answer. */
            waiting_reason: string | null;
        };
        DocumentMigrationList: {
            data: components["schemas"]["DocumentMigration"][];
            meta: components["schemas"]["PageMeta"];
        };
        DocumentMigrationMode: "copy" | "check";
        DocumentMigrationResponse: {
            data: components["schemas"]["DocumentMigration"];
        };
        DocumentMigrationStatus: "running" | "paused" | "completed" | "cancelled";
        DocumentOrigin: "source" | "upstream";
        DocumentReceivedData: {
            ar_object: string | null;
            comp_id: string;
            content_type: string;
            doc_id: string;
            document_id: string;
            erp_object_id: string | null;
            erp_object_type: string | null;
            repo_id: string;
            request_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
            /** Format: int64 */
            size_bytes: number;
        };
        DocumentReceivedEvent: {
            data: components["schemas"]["DocumentReceivedData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.received";
        };
        DocumentSearchResult: {
            data: components["schemas"]["Document"][];
            meta: components["schemas"]["CursorMeta"];
        };
        DocumentStatus: "pending" | "delivered" | "failed" | "retrying" | "discarded";
        /** @enum {string} */
        DocumentStatusInput: "pending" | "delivered" | "failed" | "retrying" | "discarded";
        DocumentSupersededData: {
            comp_id: string;
            doc_id: string;
            document_id: string;
            repo_id: string;
            /**
             * Format: int64
             * @description 1 for the document as it was received. Delivering it again, after appends for example, is another revision.
             */
            revision: number;
        };
        DocumentSupersededEvent: {
            data: components["schemas"]["DocumentSupersededData"];
            /**
             * Format: date-time
             * @description When the event was written.
             */
            timestamp: string;
            /** @constant */
            type: "document.superseded";
        };
        Enrichment: {
            attributes: components["schemas"]["EnrichmentAttributes"];
            id: string;
            /** @constant */
            type: "enrichment";
        };
        EnrichmentAttributes: {
            /** Format: date-time */
            created_at: string;
            documents: components["schemas"]["EnrichmentCounts"];
            /** @description Whether credentials are stored. */
            has_credentials: boolean;
            /**
             * @description The system of the steps of the kind `http`. Null: there is none.
             * @example {
             *       "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
             *       "headers": {}
             *     }
             */
            http: components["schemas"]["EnrichmentHttp"] | null;
            /** @description An inactive enrichment makes no calls, and documents do not wait for it. */
            is_active: boolean;
            /** @description Whether its latest documents have no business data: no call was answered, or nothing was found until the end. */
            is_failing: boolean;
            /** @description Days for which the calls are repeated after that, until the enrichment is complete. */
            late_days: number;
            /** @description The display name. */
            name: string;
            /** @description The ids of the repositories whose documents are enriched. A repository has at most one enrichment. */
            repository_ids: string[];
            /**
             * @description The calls, in order. A call may use the fields of those before it.
             * @example [
             *       {
             *         "kind": "link",
             *         "name": "link"
             *       },
             *       {
             *         "kind": "rfc",
             *         "name": "invoice",
             *         "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
             *         "imports": {
             *           "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
             *           "FISCALYEAR": "{erp_object_id[10:14]}"
             *         },
             *         "tables": {},
             *         "fields": [
             *           {
             *             "name": "vendor",
             *             "path": "$.exports.HEADERDATA.DIFF_INV",
             *             "type": "string",
             *             "optional": false
             *           }
             *         ]
             *       }
             *     ]
             */
            steps: components["schemas"]["EnrichmentStep"][];
            /** Format: date-time */
            updated_at: string;
            /** @description Seconds for which the deliveries of a document wait for its enrichment. Then they start with what is known. */
            wait_seconds: number;
        };
        /**
         * @example {
         *       "kind": "rfc",
         *       "function": "ARCHIV_GET_CONNECTIONS",
         *       "imports": {
         *         "ARCHIV_ID": "Z1",
         *         "ARC_DOC_ID": "DOC1"
         *       },
         *       "tables": {
         *         "CONNECTIONS": []
         *       }
         *     }
         */
        EnrichmentCall: {
            body?: string;
            function?: string;
            imports?: unknown;
            kind: components["schemas"]["EnrichmentCallKind"];
            method?: string;
            tables?: unknown;
            url?: string;
        };
        EnrichmentCallKind: "rfc" | "http" | "e_invoice";
        EnrichmentChange: {
            /** @description Write-only: how the relay signs in at `http.url`, as at a webhook. Another `url` or `ca_certificate` requires them again. */
            credentials?: {
                [key: string]: unknown;
            };
            /**
             * @description The system of the steps of the kind `http`. Null: there is none.
             * @example {
             *       "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
             *       "headers": {}
             *     }
             */
            http?: components["schemas"]["EnrichmentHttpInput"] | null;
            /** @description An inactive enrichment makes no calls, and documents do not wait for it. */
            is_active?: boolean;
            /** @description Days for which the calls are repeated after that, until the enrichment is complete. */
            late_days?: number;
            /** @description The display name. */
            name?: string;
            /** @description The ids of the repositories whose documents are enriched. A repository has at most one enrichment. */
            repository_ids?: string[];
            /**
             * @description The calls, in order. A call may use the fields of those before it.
             * @example [
             *       {
             *         "kind": "link",
             *         "name": "link"
             *       },
             *       {
             *         "kind": "rfc",
             *         "name": "invoice",
             *         "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
             *         "imports": {
             *           "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
             *           "FISCALYEAR": "{erp_object_id[10:14]}"
             *         },
             *         "tables": {},
             *         "fields": [
             *           {
             *             "name": "vendor",
             *             "path": "$.exports.HEADERDATA.DIFF_INV",
             *             "type": "string",
             *             "optional": false
             *           }
             *         ]
             *       }
             *     ]
             */
            steps?: components["schemas"]["EnrichmentStepInput"][];
            /** @description Seconds for which the deliveries of a document wait for its enrichment. Then they start with what is known. */
            wait_seconds?: number;
        };
        /** @description The number of documents by the status of their enrichment. */
        EnrichmentCounts: {
            /** Format: int64 */
            complete: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            partial: number;
            /** Format: int64 */
            pending: number;
        };
        EnrichmentField: {
            /** @description The name of the field: `vendor_name`. The names `erp_object_type`, `erp_object_id` and `ar_object` set the business object of the document. */
            name: string;
            /** @description If true, the enrichment is complete without this field. */
            optional: boolean;
            /** @description Where the value is in the answer: a JSONPath (RFC 9535), of which the first value counts. */
            path: string;
            /** @description A number or a date is stored in one form. */
            type: components["schemas"]["FieldType"];
        };
        EnrichmentFieldInput: {
            /** @description The name of the field: `vendor_name`. The names `erp_object_type`, `erp_object_id` and `ar_object` set the business object of the document. */
            name: string;
            /**
             * @description If true, the enrichment is complete without this field.
             * @default false
             */
            optional?: boolean;
            /** @description Where the value is in the answer: a JSONPath (RFC 9535), of which the first value counts. */
            path: string;
            /**
             * @description A number or a date is stored in one form.
             * @default string
             */
            type?: components["schemas"]["FieldTypeInput"];
        };
        EnrichmentHttp: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /** @description Further headers of every request. A secret belongs into the credentials. */
            headers: {
                [key: string]: string;
            };
            /**
             * Format: uri
             * @description Scheme, host and port of the system, with an optional path: the steps of the kind `http` are sent below it.
             */
            url: string;
        };
        EnrichmentHttpInput: {
            /** @description PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities */
            ca_certificate?: string;
            /** @description Further headers of every request. A secret belongs into the credentials. */
            headers?: {
                [key: string]: string;
            };
            /**
             * Format: uri
             * @description Scheme, host and port of the system, with an optional path: the steps of the kind `http` are sent below it.
             */
            url: string;
        };
        EnrichmentHttpStep: {
            /** @description The JSON body of a `POST`. Texts may contain placeholders. */
            body?: {
                [key: string]: unknown;
            };
            /** @description What is kept of the answer. Nothing else is. */
            fields: components["schemas"]["EnrichmentField"][];
            /**
             * @description Sends a request to `http.url`, for example to an OData service, and reads a JSON answer.
             * @constant
             */
            kind: "http";
            method: components["schemas"]["EnrichmentMethod"];
            /** @description The name of the step, for operators. */
            name: string;
            /** @description Path and query below `http.url`. May contain placeholders. */
            path: string;
        };
        EnrichmentHttpStepInput: {
            /** @description The JSON body of a `POST`. Texts may contain placeholders. */
            body?: {
                [key: string]: unknown;
            };
            /** @description What is kept of the answer. Nothing else is. */
            fields: components["schemas"]["EnrichmentFieldInput"][];
            /**
             * @description Sends a request to `http.url`, for example to an OData service, and reads a JSON answer.
             * @constant
             */
            kind: "http";
            /** @default GET */
            method?: components["schemas"]["EnrichmentMethodInput"];
            /** @description The name of the step, for operators. */
            name: string;
            /** @description Path and query below `http.url`. May contain placeholders. */
            path: string;
        };
        EnrichmentInput: {
            /** @description Write-only: how the relay signs in at `http.url`, as at a webhook. Another `url` or `ca_certificate` requires them again. */
            credentials?: {
                [key: string]: unknown;
            };
            /**
             * @description The system of the steps of the kind `http`. Null: there is none.
             * @default null
             * @example {
             *       "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
             *       "headers": {}
             *     }
             */
            http?: components["schemas"]["EnrichmentHttpInput"] | null;
            /**
             * @description An inactive enrichment makes no calls, and documents do not wait for it.
             * @default true
             */
            is_active?: boolean;
            /**
             * @description Days for which the calls are repeated after that, until the enrichment is complete.
             * @default 7
             */
            late_days?: number;
            /** @description The display name. */
            name: string;
            /** @description The ids of the repositories whose documents are enriched. A repository has at most one enrichment. */
            repository_ids: string[];
            /**
             * @description The calls, in order. A call may use the fields of those before it.
             * @example [
             *       {
             *         "kind": "link",
             *         "name": "link"
             *       },
             *       {
             *         "kind": "rfc",
             *         "name": "invoice",
             *         "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
             *         "imports": {
             *           "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
             *           "FISCALYEAR": "{erp_object_id[10:14]}"
             *         },
             *         "tables": {},
             *         "fields": [
             *           {
             *             "name": "vendor",
             *             "path": "$.exports.HEADERDATA.DIFF_INV",
             *             "type": "string",
             *             "optional": false
             *           }
             *         ]
             *       }
             *     ]
             */
            steps: components["schemas"]["EnrichmentStepInput"][];
            /**
             * @description Seconds for which the deliveries of a document wait for its enrichment. Then they start with what is known.
             * @default 60
             */
            wait_seconds?: number;
        };
        EnrichmentInvoiceStep: {
            /**
             * @description Reads the document itself, if it is an electronic invoice (XRechnung, ZUGFeRD, Factur-X), and calls nothing. It gives the fields `invoice_number`, `seller`, `total`, `currency` and `profile`.
             * @constant
             */
            kind: "e_invoice";
            /** @description The name of the step, for operators. */
            name: string;
        };
        EnrichmentInvoiceStepInput: {
            /**
             * @description Reads the document itself, if it is an electronic invoice (XRechnung, ZUGFeRD, Factur-X), and calls nothing. It gives the fields `invoice_number`, `seller`, `total`, `currency` and `profile`.
             * @constant
             */
            kind: "e_invoice";
            /**
             * @description The name of the step, for operators.
             * @default e_invoice
             */
            name?: string;
        };
        EnrichmentLinkStep: {
            /**
             * @description Finds the business object of the document, by the function `ARCHIV_GET_CONNECTIONS`.
             * @constant
             */
            kind: "link";
            /** @description The name of the step, for operators. */
            name: string;
        };
        EnrichmentLinkStepInput: {
            /**
             * @description Finds the business object of the document, by the function `ARCHIV_GET_CONNECTIONS`.
             * @constant
             */
            kind: "link";
            /**
             * @description The name of the step, for operators.
             * @default link
             */
            name?: string;
        };
        EnrichmentList: {
            data: components["schemas"]["Enrichment"][];
            meta: components["schemas"]["PageMeta"];
        };
        EnrichmentMethod: "GET" | "POST";
        /** @enum {string} */
        EnrichmentMethodInput: "GET" | "POST";
        EnrichmentResponse: {
            data: components["schemas"]["Enrichment"];
        };
        EnrichmentRfcStep: {
            /** @description What is kept of the answer. Nothing else is. */
            fields: components["schemas"]["EnrichmentField"][];
            /** @description The function module. */
            function: string;
            /** @description Importing parameters. Texts may contain placeholders. */
            imports: {
                [key: string]: unknown;
            };
            /**
             * @description Calls a function of the system in the workspace settings, which must allow it.
             * @constant
             */
            kind: "rfc";
            /** @description The name of the step, for operators. */
            name: string;
            /** @description Tables. Name each table that the answer has to contain. */
            tables: {
                [key: string]: unknown[];
            };
        };
        EnrichmentRfcStepInput: {
            /** @description What is kept of the answer. Nothing else is. */
            fields: components["schemas"]["EnrichmentFieldInput"][];
            /** @description The function module. */
            function: string;
            /** @description Importing parameters. Texts may contain placeholders. */
            imports?: {
                [key: string]: unknown;
            };
            /**
             * @description Calls a function of the system in the workspace settings, which must allow it.
             * @constant
             */
            kind: "rfc";
            /** @description The name of the step, for operators. */
            name: string;
            /** @description Tables. Name each table that the answer has to contain. */
            tables?: {
                [key: string]: unknown[];
            };
        };
        EnrichmentStatus: "pending" | "complete" | "partial" | "failed";
        EnrichmentStep: components["schemas"]["EnrichmentLinkStep"] | components["schemas"]["EnrichmentRfcStep"] | components["schemas"]["EnrichmentHttpStep"] | components["schemas"]["EnrichmentInvoiceStep"];
        EnrichmentStepInput: components["schemas"]["EnrichmentLinkStepInput"] | components["schemas"]["EnrichmentRfcStepInput"] | components["schemas"]["EnrichmentHttpStepInput"] | components["schemas"]["EnrichmentInvoiceStepInput"];
        EnrichmentStepOutcome: {
            /**
             * Format: date-time
             * @description When the step ended.
             */
            at: string;
            /** @description Why the step is not done. If it is done: why fields that are optional have no value, or null if each has one. */
            error: string | null;
            name: string;
            /** @description Of the last try. `waiting`: a value that the call needs is not known yet, or the relay was too busy to begin it. `incomplete`: the answer lacks a field. `failed`: there was no answer. */
            status: components["schemas"]["EnrichmentStepStatus"];
        };
        EnrichmentStepStatus: "done" | "waiting" | "incomplete" | "failed";
        EnrichmentTrial: {
            steps: components["schemas"]["TriedStep"][];
        };
        EnrichmentTrialInput: {
            /** @description The document that the calls are made for. */
            document_id: string;
        };
        EnrichmentTrialResponse: {
            data: components["schemas"]["EnrichmentTrial"];
        };
        Error: {
            error: components["schemas"]["ErrorBody"];
        };
        ErrorBody: {
            code: components["schemas"]["ErrorCode"];
            /** @description The invalid values, if the error concerns single values. */
            details?: components["schemas"]["ErrorDetail"][];
            /** @description Where this relay explains the code: a section of its page `/docs/errors`. */
            doc_url?: string;
            /** @description A message for people. Its wording may change. */
            message: string;
            /** @description Present in the answer 500 or 503 to a request that would change something. True: nothing was changed. False: the relay does not know; the change either took effect completely or not at all. */
            nothing_changed?: boolean;
            /** @description The id of the request, as in the header x-relay-request-id. */
            request_id: string;
        };
        /** @description A stable code for programs. More may be added. */
        ErrorCode: "invalid_request" | "unauthorized" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "nothing_to_retry" | "gone" | "precondition_failed" | "payload_too_large" | "unsupported_media_type" | "range_not_satisfiable" | "validation_failed" | "abap_exception" | "rate_limited" | "rfc_failed" | "unavailable" | "rfc_timeout" | "loop_detected" | "internal_error";
        ErrorCount: {
            /** Format: int64 */
            attempts: number;
            code: string;
        };
        ErrorDetail: {
            message: string;
            /** @description The path of the value in the request, for example `config.bucket`. */
            path: string;
        };
        Event: {
            attributes: components["schemas"]["EventAttributes"];
            id: string;
            /** @constant */
            type: "event";
        };
        EventAttributes: {
            /**
             * Format: date-time
             * @description When the transaction of the outcome began.
             */
            created_at: string;
            /** @description What happened, by the type of the event: the schemas are those of the webhooks of the same names. */
            data: {
                [key: string]: unknown;
            };
            event: components["schemas"]["EventName"];
        };
        EventList: {
            data: components["schemas"]["Event"][];
            meta: components["schemas"]["EventListMeta"];
        };
        EventListMeta: {
            /** @description True if more events may be known already: ask for them at once. */
            has_more: boolean;
            /**
             * @description Pass it as `after`. Always present.
             * @example 660b0a182de650000000a91c4000000002f17
             */
            next_cursor: string;
        };
        EventName: "document.received" | "document.discarded" | "document.delivered" | "document.failed" | "document.acknowledged" | "document.metadata_updated" | "document.appended" | "document.superseded" | "document.deleted" | "document.erased" | "delivery.delivered" | "delivery.failed" | "delivery.cancelled" | "certificate.received";
        /** @enum {string} */
        EventNameInput: "document.received" | "document.discarded" | "document.delivered" | "document.failed" | "document.acknowledged" | "document.metadata_updated" | "document.appended" | "document.superseded" | "document.deleted" | "document.erased" | "delivery.delivered" | "delivery.failed" | "delivery.cancelled" | "certificate.received";
        EventReplayInput: {
            /**
             * @description The event after which to send again. By default from the oldest event that is kept.
             * @example 660b0a182de650000000a91c4000000002f17
             */
            after?: string;
        };
        EventSubscription: {
            attributes: components["schemas"]["EventSubscriptionAttributes"];
            id: string;
            /** @constant */
            type: "event_subscription";
        };
        EventSubscriptionAttributes: {
            /**
             * Format: int64
             * @description Failed attempts to send the next event. It is repeated until it succeeds, and later events wait.
             */
            attempts: number;
            /** Format: date-time */
            created_at: string;
            /**
             * @description The last event that was sent or passed over.
             * @example 660b0a182de650000000a91c4000000002f17
             */
            cursor: string;
            destination_id: string;
            events: components["schemas"]["EventName"][];
            /**
             * Format: date-time
             * @description When the first of these attempts failed.
             */
            failing_since: string | null;
            is_active: boolean;
            last_error: string | null;
            last_error_code: string | null;
            /**
             * Format: date-time
             * @description When the last event was sent.
             */
            last_sent_at: string | null;
            name: string;
            /** Format: date-time */
            next_attempt_at: string | null;
            /** Format: date-time */
            updated_at: string;
            /**
             * Format: date-time
             * @description When the oldest event after the cursor was written, whatever its type. Null if there is none: everything was sent.
             */
            waiting_since: string | null;
        };
        EventSubscriptionChange: {
            /** @description The id of the destination that the events are sent to, of the type `webhook`. */
            destination_id?: string;
            /** @description The types of events that are sent. */
            events?: components["schemas"]["EventNameInput"][];
            /** @description An inactive subscription sends nothing, and keeps its cursor. */
            is_active?: boolean;
            /** @description The display name. */
            name?: string;
        };
        EventSubscriptionInput: {
            /**
             * @description The event after which it begins. By default, what happens from now on is sent.
             * @example 660b0a182de650000000a91c4000000002f17
             */
            after?: string;
            /** @description The id of the destination that the events are sent to, of the type `webhook`. */
            destination_id: string;
            /** @description The types of events that are sent. */
            events: components["schemas"]["EventNameInput"][];
            /**
             * @description An inactive subscription sends nothing, and keeps its cursor.
             * @default true
             */
            is_active?: boolean;
            /** @description The display name. */
            name: string;
        };
        EventSubscriptionList: {
            data: components["schemas"]["EventSubscription"][];
            meta: components["schemas"]["PageMeta"];
        };
        EventSubscriptionResponse: {
            data: components["schemas"]["EventSubscription"];
        };
        FailureGroup: {
            attributes: components["schemas"]["FailureGroupAttributes"];
            id: string;
            /** @constant */
            type: "failure_group";
        };
        FailureGroupAttributes: {
            connector_type: components["schemas"]["ConnectorType"];
            /** @description Deliveries to a deleted destination cannot be retried. */
            destination_deleted: boolean;
            destination_id: string;
            destination_name: string;
            /**
             * Format: int64
             * @description Documents with such a delivery. A document with several failed deliveries is in several groups.
             */
            documents: number;
            /** @description The code of the last error. Null if the error is not one of an attempt. */
            error_code: string | null;
            /** @description The message of the delivery that got its status last, or null if it has none. */
            last_message: string | null;
            /**
             * Format: date-time
             * @description When the last of these deliveries got its status.
             */
            newest_at: string;
            /**
             * Format: date-time
             * @description When the first of these deliveries got its status.
             */
            oldest_at: string;
            status: components["schemas"]["FailureStatus"];
        };
        FailureGroupList: {
            data: components["schemas"]["FailureGroup"][];
            meta: components["schemas"]["PageMeta"];
        };
        FailureStatus: "failed" | "cancelled" | "retrying";
        /** @enum {string} */
        FailureStatusInput: "failed" | "cancelled" | "retrying";
        FieldType: "string" | "number" | "date";
        /** @enum {string} */
        FieldTypeInput: "string" | "number" | "date";
        FilterCondition: "content_types" | "comp_ids" | "min_bytes" | "max_bytes" | "fields";
        IncidentEvent: "destination.failing" | "delivery.failed" | "source.silent" | "certificate.expiring" | "repository.not_connected" | "enrichment.failing" | "upstream.failing" | "event_subscription.failing";
        /** @enum {string} */
        IncidentEventInput: "destination.failing" | "delivery.failed" | "source.silent" | "certificate.expiring" | "repository.not_connected" | "enrichment.failing" | "upstream.failing" | "event_subscription.failing";
        KeyLevel: "viewer" | "member" | "admin";
        /** @enum {string} */
        KeyLevelInput: "viewer" | "member" | "admin";
        LateData: {
            /** @description Why the last try has failed. */
            error: string | null;
            /**
             * Format: date-time
             * @description When it was found.
             */
            found_at: string;
            /** @description `pending`: it is being brought to the copy. `updated`: the copy has it. `failed`: it could not be brought, for the reason in `error`. `not_possible`: a destination of this kind cannot take it. */
            status: components["schemas"]["LateDataStatus"];
            /**
             * Format: date-time
             * @description When the copy was last updated.
             */
            updated_at: string | null;
        };
        LateDataStatus: "pending" | "updated" | "failed" | "not_possible";
        LateDocumentData: {
            ar_object: string | null;
            comp_id: string;
            /** @description As in the message that contained the document. */
            delivery_id: string;
            doc_id: string;
            document_id: string;
            erp_object_id: string | null;
            erp_object_type: string | null;
            /** @description Everything that is known by now, by the names of the fields. */
            fields: {
                [key: string]: string;
            };
            /** @description As in the message that contained the document. */
            path: string;
            /** Format: date-time */
            received_at: string;
            repo_id: string;
        };
        /** @description Time from the receipt of a document, or from the last append to it, to its delivery: percentiles in milliseconds, or null without deliveries. They are estimated from a histogram whose buckets double. */
        Latency: {
            /** Format: int64 */
            p50_ms: number | null;
            /** Format: int64 */
            p95_ms: number | null;
            /** Format: int64 */
            p99_ms: number | null;
        };
        LinkList: {
            /** @description The name of the file. */
            name: string;
            /**
             * Format: int64
             * @description Rows of other repositories, which were left out.
             */
            other_rows: number;
            /**
             * Format: int64
             * @description Rows of the repository.
             */
            rows: number;
            /** @description Of the file. */
            sha256: string;
        };
        NamedResource: {
            id: string;
            name: string;
        };
        Notice: {
            attributes: components["schemas"]["NoticeAttributes"];
            id: string;
            /** @constant */
            type: "notice";
        };
        NoticeAttributes: {
            /** Format: int64 */
            attempts: number;
            /** Format: date-time */
            created_at: string;
            data: components["schemas"]["NoticeData"];
            /** Format: date-time */
            delivered_at: string | null;
            incident_id: string;
            last_error: string | null;
            last_error_code: string | null;
            /** Format: date-time */
            next_attempt_at: string | null;
            /** @description The type of the message. */
            notice_type: components["schemas"]["NoticeEventType"];
            /** @description `pending` until the destination has accepted the notice, or the retry settings of the workspace allow no further attempt. */
            status: components["schemas"]["NoticeStatus"];
        };
        NoticeCertificate: {
            auth_id: string;
            id: string;
            /** Format: date-time */
            valid_to: string;
        };
        NoticeData: {
            certificate?: components["schemas"]["NoticeCertificate"];
            /**
             * Format: date-time
             * @description When the relay found that the incident had ended.
             */
            closed_at?: string;
            /** @description Address in the console at which to look further, if RELAY_BASE_URL is set. */
            console_url?: string;
            /**
             * Format: int64
             * @description Failed attempts in a row, failed deliveries, discarded documents, or documents without business data; 1 for other incidents.
             */
            count: number;
            /**
             * Format: date-time
             * @description When the client certificate of the destination expires.
             */
            credentials_expire_at?: string;
            destination?: components["schemas"]["NoticeDestination"];
            /** @description One of the documents that the incident concerns. */
            document?: components["schemas"]["NoticeDocument"];
            enrichment?: components["schemas"]["NoticeEnrichment"];
            /** @description The latest error. */
            error?: components["schemas"]["NoticeError"];
            incident_id: string;
            /**
             * Format: date-time
             * @description When a silent source system last sent a request.
             */
            last_request_at?: string;
            /**
             * Format: date-time
             * @description When the incident began, for example when the first of the failed attempts ended. The relay may have found it later.
             */
            opened_at: string;
            /** @description What to do. */
            remedy?: string;
            repository?: components["schemas"]["NoticeRepository"];
            subscription?: components["schemas"]["NoticeSubscription"];
            /** @description What has happened, in a sentence. */
            summary: string;
            /** @description `{userSlug}/{workspaceSlug}` */
            workspace: string;
        };
        NoticeDestination: {
            id: string;
            name: string;
            type: string;
        };
        NoticeDocument: {
            comp_id: string;
            /** @description Address of the document in the console, if RELAY_BASE_URL is set. */
            console_url?: string;
            doc_id: string;
            id: string;
            repo_id: string;
            /** @description Id of the workflow of its delivery in Temporal. */
            workflow_id: string;
            /** @description Address of the workflow in the Temporal UI, if TEMPORAL_UI_URL is set. */
            workflow_url?: string;
        };
        NoticeEnrichment: {
            id: string;
            name: string;
        };
        NoticeError: {
            code?: string;
            message?: string;
        };
        NoticeEventType: "relay.destination.failing" | "relay.destination.recovered" | "relay.delivery.failed" | "relay.delivery.recovered" | "relay.source.silent" | "relay.source.recovered" | "relay.certificate.expiring" | "relay.certificate.recovered" | "relay.repository.not_connected" | "relay.repository.recovered" | "relay.enrichment.failing" | "relay.enrichment.recovered" | "relay.upstream.failing" | "relay.upstream.recovered" | "relay.event_subscription.failing" | "relay.event_subscription.recovered";
        NoticeList: {
            data: components["schemas"]["Notice"][];
            meta: components["schemas"]["CursorMeta"];
        };
        NoticeRepository: {
            id: string;
            repo_id: string;
        };
        NoticeStatus: "pending" | "delivered" | "failed";
        NoticeSubscription: {
            id: string;
            name: string;
        };
        Notification: {
            attributes: components["schemas"]["NotificationAttributes"];
            id: string;
            /** @constant */
            type: "notification";
        };
        NotificationAttributes: {
            /** Format: date-time */
            created_at: string;
            destination_id: string;
            /** @description The incidents that are announced, each at its beginning and at its end. `destination.failing`: Attempts at a destination fail one after the other, or its circuit is open. `delivery.failed`: Deliveries to a destination have failed with the same error code, and nobody has acknowledged them. `source.silent`: The source system has sent nothing to a repository for `silence_hours`. `certificate.expiring`: A certificate expires soon: one that signed requests need, and no newer one is active, or the client certificate of a destination. `repository.not_connected`: A repository receives documents, and no connection leads from it to a destination: they are discarded. `enrichment.failing`: The calls of an enrichment fail for its latest documents: they are delivered without business data. `upstream.failing`: The earlier content server of a repository has failed for 5 minutes: documents that only it has, and new ones, are answered with 503. `event_subscription.failing`: The receiver of an event subscription has not accepted the next event for 15 minutes. */
            events: components["schemas"]["IncidentEvent"][];
            is_active: boolean;
            name: string;
            /** Format: int64 */
            quiet_seconds: number;
            /** Format: int64 */
            silence_hours: number;
            /** Format: date-time */
            updated_at: string;
        };
        NotificationChange: {
            /** @description The id of the destination that the notices are sent to, of the type `email` or `webhook`. */
            destination_id?: string;
            /** @description The incidents that are announced, each at its beginning and at its end. `destination.failing`: Attempts at a destination fail one after the other, or its circuit is open. `delivery.failed`: Deliveries to a destination have failed with the same error code, and nobody has acknowledged them. `source.silent`: The source system has sent nothing to a repository for `silence_hours`. `certificate.expiring`: A certificate expires soon: one that signed requests need, and no newer one is active, or the client certificate of a destination. `repository.not_connected`: A repository receives documents, and no connection leads from it to a destination: they are discarded. `enrichment.failing`: The calls of an enrichment fail for its latest documents: they are delivered without business data. `upstream.failing`: The earlier content server of a repository has failed for 5 minutes: documents that only it has, and new ones, are answered with 503. `event_subscription.failing`: The receiver of an event subscription has not accepted the next event for 15 minutes. */
            events?: components["schemas"]["IncidentEventInput"][];
            /** @description An inactive notification announces nothing. */
            is_active?: boolean;
            /** @description The display name. */
            name?: string;
            /** @description Time after a notice in which no other incident of the same subject is announced. One that is still open then is announced then. */
            quiet_seconds?: number;
            /** @description Hours without a request to a repository after which `source.silent` is announced. Choose more than a usual night or weekend. */
            silence_hours?: number;
        };
        NotificationInput: {
            /** @description The id of the destination that the notices are sent to, of the type `email` or `webhook`. */
            destination_id: string;
            /** @description The incidents that are announced, each at its beginning and at its end. `destination.failing`: Attempts at a destination fail one after the other, or its circuit is open. `delivery.failed`: Deliveries to a destination have failed with the same error code, and nobody has acknowledged them. `source.silent`: The source system has sent nothing to a repository for `silence_hours`. `certificate.expiring`: A certificate expires soon: one that signed requests need, and no newer one is active, or the client certificate of a destination. `repository.not_connected`: A repository receives documents, and no connection leads from it to a destination: they are discarded. `enrichment.failing`: The calls of an enrichment fail for its latest documents: they are delivered without business data. `upstream.failing`: The earlier content server of a repository has failed for 5 minutes: documents that only it has, and new ones, are answered with 503. `event_subscription.failing`: The receiver of an event subscription has not accepted the next event for 15 minutes. */
            events: components["schemas"]["IncidentEventInput"][];
            /**
             * @description An inactive notification announces nothing.
             * @default true
             */
            is_active?: boolean;
            /** @description The display name. */
            name: string;
            /**
             * @description Time after a notice in which no other incident of the same subject is announced. One that is still open then is announced then.
             * @default 900
             */
            quiet_seconds?: number;
            /**
             * @description Hours without a request to a repository after which `source.silent` is announced. Choose more than a usual night or weekend.
             * @default 72
             */
            silence_hours?: number;
        };
        NotificationList: {
            data: components["schemas"]["Notification"][];
            meta: components["schemas"]["PageMeta"];
        };
        NotificationResponse: {
            data: components["schemas"]["Notification"];
        };
        OldestDelivery: {
            connector_type: components["schemas"]["ConnectorType"];
            destination_id: string;
            destination_name: string;
            document_id: string;
            /**
             * Format: date-time
             * @description When the document was received.
             */
            received_at: string;
            status: components["schemas"]["DeliveryStatus"];
        };
        OldestDestinationDelivery: {
            document_id: string;
            /**
             * Format: date-time
             * @description When the document was received.
             */
            received_at: string;
            status: components["schemas"]["DeliveryStatus"];
        };
        OnResume: "forward" | "skip";
        /** @enum {string} */
        OnResumeInput: "forward" | "skip";
        OpenDelivery: {
            destination_id: string;
            destination_name: string;
            status: "pending" | "held" | "retrying";
        };
        PageMeta: {
            /** Format: int64 */
            current_page: number;
            /** Format: int64 */
            per_page: number;
            /** Format: int64 */
            total: number;
        };
        /** @description Failed documents, and deliveries that have not ended, at present, whatever the range. */
        PresentCounts: {
            /** Format: int64 */
            held: number;
            /** Format: int64 */
            pending: number;
            /** Format: int64 */
            retrying: number;
            /**
             * Format: int64
             * @description Documents that were discarded for lack of a connection, and that nobody has acknowledged or replayed. Null if `documents` is null.
             */
            unacknowledged_discards: number | null;
            /**
             * Format: int64
             * @description Failed documents that nobody has acknowledged. Null if `documents` is null.
             */
            unacknowledged_failures: number | null;
        };
        PreviewedDocument: {
            comp_id: string;
            content_type: string;
            doc_id: string;
            document_id: string;
            /** @description The path at each destination, below its folder or prefix. Null if the filter passes the document over. */
            path: string | null;
            /** Format: date-time */
            received_at: string;
            repo_id: string;
            /** Format: int64 */
            size_bytes: number;
            /** @description The first condition of the filter that the document does not meet. Null if it meets all. */
            unmet_condition: components["schemas"]["FilterCondition"] | null;
        };
        RelayCertificateExpiringMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.certificate.expiring";
        };
        RelayCertificateRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.certificate.recovered";
        };
        RelayDeliveryFailedMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.delivery.failed";
        };
        RelayDeliveryRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.delivery.recovered";
        };
        RelayDestinationFailingMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.destination.failing";
        };
        RelayDestinationRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.destination.recovered";
        };
        RelayEnrichmentFailingMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.enrichment.failing";
        };
        RelayEnrichmentRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.enrichment.recovered";
        };
        RelayEventSubscriptionFailingMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.event_subscription.failing";
        };
        RelayEventSubscriptionRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.event_subscription.recovered";
        };
        RelayNotificationTestMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.notification.test";
        };
        RelayRepositoryNotConnectedMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.repository.not_connected";
        };
        RelayRepositoryRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.repository.recovered";
        };
        RelaySourceRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.source.recovered";
        };
        RelaySourceSilentMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.source.silent";
        };
        RelayUpstreamFailingMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.upstream.failing";
        };
        RelayUpstreamRecoveredMessage: {
            data: components["schemas"]["NoticeData"];
            /**
             * Format: date-time
             * @description When the notice was written.
             */
            timestamp: string;
            /** @constant */
            type: "relay.upstream.recovered";
        };
        Removal: {
            /** @description Other destinations that also lose documents: no connection leads to them from these repositories from then on. At most 100 repositories of each. */
            affected_destinations: components["schemas"]["AffectedDestination"][];
            /**
             * Format: int64
             * @description Failed documents that count as delivered from then on, because only their deliveries to the destination have failed, which are cancelled. At most 10,000 are counted.
             */
            failed_documents_delivered: number;
            removed_connections: components["schemas"]["NamedResource"][];
            removed_notifications: components["schemas"]["NamedResource"][];
            /** @description With `keep_connections`: the connections that stay without what is deleted. */
            unlinked_connections: components["schemas"]["NamedResource"][];
            /** @description Repositories that no connection links to a destination from then on: what they receive is discarded. */
            unwired_repositories: components["schemas"]["UnwiredRepository"][];
        };
        RemovalResponse: {
            data: components["schemas"]["Removal"];
        };
        Replay: {
            new_request_id: string;
            replay_of: string;
        };
        ReplayResponse: {
            data: components["schemas"]["Replay"];
        };
        Repository: {
            attributes: components["schemas"]["RepositoryAttributes"];
            id: string;
            /** @constant */
            type: "repository";
        };
        RepositoryAttributes: {
            accepts_mcreate: boolean;
            /**
             * Format: int64
             * @description The number of active certificates.
             */
            active_certificates: number;
            /** Format: date-time */
            created_at: string;
            /** Format: int64 */
            document_count: number;
            /**
             * Format: date-time
             * @description When the last request that names the repository arrived, refused ones included. Null if none is stored.
             */
            last_request_at: string | null;
            name: string;
            repo_id: string;
            signature_verification: boolean;
            signed_parameter_order: components["schemas"]["SignedParameterOrder"];
            status: components["schemas"]["ActivityStatus"];
            /** Format: date-time */
            updated_at: string;
            /** @description The content server that the source system used before. Null if there is none. The private key is never returned, nor user and password of the proxy. */
            upstream: components["schemas"]["Upstream"] | null;
            /** @description Conditions that an operator should know. Empty for an inactive repository. */
            warnings: components["schemas"]["RepositoryWarning"][];
        };
        RepositoryCertificate: {
            id: string;
            status: components["schemas"]["ActivityStatus"];
            subject: string;
            /** Format: date-time */
            valid_from: string;
            /** Format: date-time */
            valid_to: string;
        };
        RepositoryChange: {
            /** @description Whether `mCreate`, which creates several documents with one request, is accepted. A signature covers the id of the first document only, so a signed `mCreate` creates any others. Few source systems use it. */
            accepts_mcreate?: boolean;
            /** @description The display name. */
            name?: string;
            /** @description If true, requests of the source system without a valid signature are refused. */
            signature_verification?: boolean;
            /** @description The order of the signed parameters in a signed URL. `fixed`: contRep, docId, compId, docProt, scanPerformed, accessMode, authId, expiration, as far as a command has them; all known clients use it. `any`: for a client that uses another order; a signed URL is then easier to misuse. */
            signed_parameter_order?: components["schemas"]["SignedParameterOrderInput"];
            /** @description An inactive repository refuses all requests of the source system. */
            status?: components["schemas"]["ActivityStatusInput"];
            /** @description The content server that the source system used before. Documents that the relay does not have are fetched from there when they are first asked for, and kept. Null if there is none. Replaced as a whole. */
            upstream?: components["schemas"]["UpstreamInput"] | null;
        };
        RepositoryCheck: {
            /** Format: int64 */
            duration_ms: number;
            /** Format: int64 */
            failed: number;
            /** @description True if the check took too long and was stopped. */
            interrupted: boolean;
            /** @description The docIds of documents of the check that the repository may still have. */
            left_behind: string[];
            /** Format: int64 */
            not_checked: number;
            /** Format: int64 */
            not_offered: number;
            /** Format: int64 */
            passed: number;
            profile: components["schemas"]["RepositoryCheckProfile"];
            results: components["schemas"]["RepositoryCheckResult"][];
            /** @description True if the repository requires signatures, so that the requests were signed. */
            signed: boolean;
            /** Format: date-time */
            started_at: string;
        };
        RepositoryCheckInput: {
            /**
             * @description How much is checked.
             * @default smoke
             */
            profile?: components["schemas"]["RepositoryCheckProfileInput"];
        };
        RepositoryCheckProfile: "smoke" | "core";
        /** @enum {string} */
        RepositoryCheckProfileInput: "smoke" | "core";
        RepositoryCheckResponse: {
            data: components["schemas"]["RepositoryCheck"];
        };
        RepositoryCheckResult: {
            /** Format: int64 */
            duration_ms: number;
            /** @description The name of the check. */
            id: string;
            /** @description What was found. Null if the check passed. */
            message: string | null;
            /** @description What to do. Null unless the check failed. */
            remedy: string | null;
            status: components["schemas"]["RepositoryCheckStatus"];
            /** @description What a content server does. */
            title: string;
        };
        RepositoryCheckStatus: "passed" | "failed" | "not_offered" | "not_checked";
        RepositoryConnection: {
            destination_name: string;
            id: string;
            name: string;
            status: components["schemas"]["ActivityStatus"];
        };
        RepositoryInput: {
            /**
             * @description Whether `mCreate`, which creates several documents with one request, is accepted. A signature covers the id of the first document only, so a signed `mCreate` creates any others. Few source systems use it.
             * @default true
             */
            accepts_mcreate?: boolean;
            /** @description The display name. */
            name: string;
            /** @description The repository identifier in the source system (`contRep`). */
            repo_id: string;
            /**
             * @description If true, requests of the source system without a valid signature are refused.
             * @default false
             */
            signature_verification?: boolean;
            /**
             * @description The order of the signed parameters in a signed URL. `fixed`: contRep, docId, compId, docProt, scanPerformed, accessMode, authId, expiration, as far as a command has them; all known clients use it. `any`: for a client that uses another order; a signed URL is then easier to misuse.
             * @default fixed
             */
            signed_parameter_order?: components["schemas"]["SignedParameterOrderInput"];
            /**
             * @description The content server that the source system used before. Documents that the relay does not have are fetched from there when they are first asked for, and kept. Null if there is none. Replaced as a whole.
             * @default null
             */
            upstream?: components["schemas"]["UpstreamInput"] | null;
        };
        RepositoryList: {
            data: components["schemas"]["Repository"][];
            meta: components["schemas"]["PageMeta"];
        };
        RepositoryResponse: {
            data: components["schemas"]["Repository"];
        };
        RepositoryWarning: {
            /** @description `open_to_all`: neither signatures nor source addresses are checked. `not_connected`: documents are discarded. `no_active_certificate`: signatures are required, and no certificate is active, so every signed request is refused. `similar_name`: another repository, whose name begins alike, accepts signatures of the same signer. `upstream_failing`: the upstream has failed for 5 minutes, and documents that only it has, and new ones, are answered with 503. */
            code: components["schemas"]["RepositoryWarningCode"];
            /** @description What the condition means, and how to end it. */
            message: string;
        };
        RepositoryWarningCode: "open_to_all" | "not_connected" | "no_active_certificate" | "similar_name" | "upstream_failing";
        RetriedDocument: {
            attributes: components["schemas"]["RetriedDocumentAttributes"];
            id: string;
            /** @constant */
            type: "document";
        };
        RetriedDocumentAttributes: {
            deliveries: components["schemas"]["Delivery"][];
            doc_id: string;
            /** Format: date-time */
            received_at: string;
            repo_id: string;
            status: components["schemas"]["DocumentStatus"];
        };
        RetriedDocumentResponse: {
            data: components["schemas"]["RetriedDocument"];
        };
        RfcCredentials: {
            /** Format: password */
            password: string;
            /** Format: password */
            user: string;
        };
        RfcSettings: {
            /** @description Functions that may be called; empty: none */
            allowed_functions: string[];
            /** @description CA certificate in PEM, trusted instead of the public certificate authorities */
            ca_certificate?: string;
            /** @description Client to log on to */
            client: string;
            /** @description Logon language; the default is the user's own */
            language?: string;
            /** @description Scheme, host and port of the system */
            url: string;
        };
        RfcSettingsChange: {
            allowed_functions?: string[];
            /** @description CA certificate in PEM, trusted instead of the public certificate authorities */
            ca_certificate?: string;
            /** @description Client to log on to */
            client?: string;
            /** @description Write-only. A new url, client or ca_certificate requires the credentials in the same request */
            credentials?: components["schemas"]["RfcCredentials"];
            /** @description Logon language; the default is the user's own */
            language?: string;
            /** @description Scheme, host and port of the system */
            url?: string;
        };
        Settings: {
            attributes: components["schemas"]["SettingsAttributes"];
            id: string;
            /** @constant */
            type: "settings";
        };
        SettingsAttributes: {
            /** @description Retention of audit log entries. In the compliance tier always `null`: entries are kept indefinitely */
            audit_days: number | null;
            /** @description Retention of the bodies of captured requests */
            captured_bodies_days: number;
            /** @description Retention of captured requests */
            captured_requests_days: number;
            /** @description Retention of the content of documents with which nothing is left to be done: no delivery is open, and what has failed is acknowledged; `null` keeps it indefinitely */
            content_days: number | null;
            /** @description Retention of events. With 0, none are written */
            events_days: number;
            /** @description Attempts after the first one; 0 disables retries */
            max_retries: number;
            /** @description Addresses that the source system may send from; empty allows any address */
            receiver_allowed_cidrs: (string)[];
            /**
             * Format: int64
             * @description Bytes of content that the workspace may store; `null` applies the limit of the installation, which is never exceeded
             */
            receiver_max_bytes: number | null;
            /**
             * Format: int64
             * @description Requests per minute that a receiver process accepts for the workspace; `null` applies the limit of the installation, which is never exceeded
             */
            receiver_max_requests_per_minute: number | null;
            /** @description Delay before the second attempt; it doubles with each further attempt */
            retry_initial_interval_seconds: number;
            /** @description Longest delay between two attempts */
            retry_max_interval_seconds: number;
            /** @description Every attempt starts within this time after the first one */
            retry_ttl_seconds: number;
            /** @description System whose functions the bridge calls; `null` switches the bridge off */
            rfc: components["schemas"]["RfcSettings"] | null;
            /** @description The compliance tier keeps the audit log indefinitely. The operator of the relay sets the tier. */
            tier: components["schemas"]["Tier"];
        };
        SettingsChange: {
            /** @description Retention of audit log entries. In the compliance tier always `null`: entries are kept indefinitely */
            audit_days?: number | null;
            /** @description Retention of the bodies of captured requests */
            captured_bodies_days?: number;
            /** @description Retention of captured requests */
            captured_requests_days?: number;
            /** @description Retention of the content of documents with which nothing is left to be done: no delivery is open, and what has failed is acknowledged; `null` keeps it indefinitely */
            content_days?: number | null;
            /** @description Retention of events. With 0, none are written */
            events_days?: number;
            /** @description Attempts after the first one; 0 disables retries */
            max_retries?: number;
            /** @description Addresses that the source system may send from; empty allows any address */
            receiver_allowed_cidrs?: (string)[];
            /**
             * Format: int64
             * @description Bytes of content that the workspace may store; `null` applies the limit of the installation, which is never exceeded
             */
            receiver_max_bytes?: number | null;
            /**
             * Format: int64
             * @description Requests per minute that a receiver process accepts for the workspace; `null` applies the limit of the installation, which is never exceeded
             */
            receiver_max_requests_per_minute?: number | null;
            /** @description Delay before the second attempt; it doubles with each further attempt */
            retry_initial_interval_seconds?: number;
            /** @description Longest delay between two attempts */
            retry_max_interval_seconds?: number;
            /** @description Every attempt starts within this time after the first one */
            retry_ttl_seconds?: number;
            /** @description System whose functions the bridge calls: the given keys are merged; `null` switches the bridge off */
            rfc?: components["schemas"]["RfcSettingsChange"] | null;
        };
        SettingsResponse: {
            data: components["schemas"]["Settings"];
        };
        SignedParameterOrder: "fixed" | "any";
        /** @enum {string} */
        SignedParameterOrderInput: "fixed" | "any";
        SingleBulkRetry: {
            attributes: components["schemas"]["SingleBulkRetryAttributes"];
            id: string;
            /** @constant */
            type: "bulk_retry";
        };
        SingleBulkRetryAttributes: {
            /** @description `retry`: failed deliveries. `replay`, `acknowledge`: the requests of discarded documents, or these documents. `deliver`: documents to a destination that was connected later. */
            action: components["schemas"]["BulkAction"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: int64
             * @description Of these deliveries: those that have arrived. Deliveries that a later bulk retry has taken count there.
             */
            delivered_deliveries: number;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: int64
             * @description Those that have failed again, or were cancelled.
             */
            failed_deliveries: number;
            filter: components["schemas"]["BulkRetryFilter"];
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted.
             */
            matched_deliveries: number;
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted, and the number grows if more are taken.
             */
            matched_documents: number;
            /**
             * Format: int64
             * @description Those that wait or are under way.
             */
            open_deliveries: number;
            /**
             * Format: int64
             * @description Deliveries that were made again, that the documents of the replays have, or that were planned.
             */
            retried_deliveries: number;
            /**
             * Format: int64
             * @description Documents to which the action was applied.
             */
            retried_documents: number;
            /**
             * Format: int64
             * @description Documents to which it could not be applied, such as those whose request was refused again or has no body any more, or that the filter of the connection passes over.
             */
            skipped_documents: number;
            status: components["schemas"]["BulkRetryStatus"];
        };
        SingleBulkRetryResponse: {
            data: components["schemas"]["SingleBulkRetry"];
        };
        SingleCapturedRequest: {
            attributes: components["schemas"]["SingleCapturedRequestAttributes"];
            id: string;
            /** @constant */
            type: "captured_request";
        };
        SingleCapturedRequestAttributes: {
            channel: components["schemas"]["Channel"];
            /** Format: date-time */
            created_at: string;
            /** @description The documents that the request created. */
            document_ids: string[];
            /** Format: int64 */
            duration_ms: number;
            /** @description The code of the error that the request was answered with. Null if it has none. */
            error_code: string | null;
            http_method: string;
            query_string: string;
            replay_of: string | null;
            /** Format: date-time */
            request_at: string;
            request_body_preview: string | null;
            request_body_truncated: boolean;
            /** @description Why the body is not stored. Null if it is not truncated. */
            request_body_truncation_reason: components["schemas"]["TruncationReason"] | null;
            /** Format: int64 */
            request_content_length: number;
            /** @description Empty if the request had no Content-Type. */
            request_content_type: string;
            request_headers: {
                [key: string]: string;
            };
            /** Format: date-time */
            response_at: string;
            response_body_preview: string | null;
            response_body_truncated: boolean;
            /** @description Why the body is not stored. Null if it is not truncated. */
            response_body_truncation_reason: components["schemas"]["TruncationReason"] | null;
            /** Format: int64 */
            response_content_length: number;
            /** @description Empty if the response had no Content-Type. */
            response_content_type: string;
            response_headers: {
                [key: string]: string;
            };
            source_ip: string;
            /** Format: int64 */
            status_code: number;
            uri: string;
            workspace_id: string;
        };
        SingleCapturedRequestResponse: {
            data: components["schemas"]["SingleCapturedRequest"];
        };
        SingleDelivery: {
            /** Format: int64 */
            attempts: number;
            /** Format: date-time */
            delivered_at: string | null;
            destination_id: string;
            destination_name: string;
            /** @description What ended a failed or cancelled delivery. `permanent_error`: no retry can fix the error. `max_retries`, `retry_ttl_seconds`: this retry setting was the limit. `workflow_cancelled`, `workflow_terminated`: a person has ended the workflow in Temporal. `destination_deleted`, `connection_deleted`, `document_erased`: this was deleted. `connection_changed`: the connection does not lead to the destination any more. `content_removed`: the content is missing, and nobody has erased it. */
            ended_by: components["schemas"]["DeliveryEnd"] | null;
            /** @description The error of the last attempt, or null if it succeeded. `code` is null if a person has ended the workflow in Temporal. */
            last_error: components["schemas"]["DeliveryProblem"] | null;
            /** @description Business data that was found after the delivery. Null if the copy was delivered with everything that is known. */
            late_data: components["schemas"]["LateData"] | null;
            /**
             * Format: date-time
             * @description When the next attempt of a `retrying` delivery is due, or the next trial of the circuit that the delivery waits for; otherwise null. It is past while the attempt is under way.
             */
            next_attempt_at: string | null;
            /** @description The location of the document at the destination. */
            path: string;
            status: components["schemas"]["DeliveryStatus"];
            /**
             * Format: date-time
             * @description When the delivery got its status.
             */
            status_since: string;
            /** @description Why an open delivery makes no attempt at the moment. `attempt`: the next one is due at `next_attempt_at`. `slot`: it waits for a slot of the destination or a place in a worker. `circuit`: the next trial of the destination is due at `next_attempt_at`. `connection`: this connection is inactive. `data`: its filter needs business data that is not known yet. `paused`: an operator has paused it in Temporal. `worker`: an attempt is due, and no worker has begun with it. Null while an attempt is under way, and after the end. */
            waiting_for: components["schemas"]["Wait"] | null;
        };
        SingleDestination: {
            attributes: components["schemas"]["SingleDestinationAttributes"];
            id: string;
            /** @constant */
            type: "destination";
        };
        SingleDestinationAttributes: {
            /** @description `open`: deliveries wait, because the last attempts failed. `half_open`: one delivery tries the target. `closed` otherwise. */
            circuit: components["schemas"]["CircuitState"];
            /**
             * Format: date-time
             * @description When `circuit` changed last.
             */
            circuit_since: string | null;
            /** @description Path, query and header values of a webhook are masked for viewers. */
            config: {
                [key: string]: unknown;
            };
            connections: components["schemas"]["DestinationConnection"][];
            connector_type: components["schemas"]["ConnectorType"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description When the credentials expire, if they contain a client certificate. The incident `certificate.expiring` announces it.
             */
            credentials_expire_at: string | null;
            /**
             * Format: int64
             * @description Attempts that have failed since the last success.
             */
            failed_attempts: number;
            /** Format: date-time */
            last_delivered_at: string | null;
            /** @description The error of the last attempt that failed. Null once an attempt or a test has succeeded since. */
            last_error: string | null;
            /**
             * Format: date-time
             * @description When `last_error` occurred.
             */
            last_error_at: string | null;
            /** @description The code of `last_error`. */
            last_error_code: string | null;
            name: string;
            /**
             * Format: date-time
             * @description When the next delivery may try the target, if `circuit` is `open`.
             */
            next_trial_at: string | null;
            /** @description The way in which the credentials sign in, by its name in `x-sign-in` of their schema, such as `sas_token`. Null if the connector type has only one. */
            sign_in: string | null;
            /**
             * Format: int64
             * @description Deliveries that may run at this destination at a time: `max_concurrent_deliveries` of the config, or the default of the installation.
             */
            slots: number;
            /**
             * Format: int64
             * @description Deliveries that run at this destination at present.
             */
            slots_in_use: number;
            status: components["schemas"]["DestinationStatus"];
            /** Format: date-time */
            updated_at: string;
            /** @description Conditions that an operator should know. */
            warnings: components["schemas"]["DestinationWarning"][];
        };
        SingleDestinationResponse: {
            data: components["schemas"]["SingleDestination"];
        };
        SingleDocument: {
            attributes: components["schemas"]["SingleDocumentAttributes"];
            id: string;
            /** @constant */
            type: "document";
        };
        SingleDocumentAttributes: {
            /**
             * Format: date-time
             * @description When an operator acknowledged the failed or discarded document, or replayed the request of the discarded one.
             */
            acknowledged_at: string | null;
            comp_id: string;
            /** @description Whether the bytes are kept and can be downloaded. */
            content_retained: boolean;
            content_type: string;
            deliveries: components["schemas"]["SingleDelivery"][];
            doc_id: string;
            /** @description How far the enrichment is. Null if the document has none. */
            enrichment: components["schemas"]["DocumentEnrichment"] | null;
            /** @description The business data that was found, by the names of the fields. */
            fields: {
                [key: string]: string;
            };
            metadata: components["schemas"]["DocumentMetadata"];
            /** @description `source`: the source system has sent the document. `upstream`: the relay has fetched it from the content server that the source system used before. Such a document without deliveries is `delivered`. */
            origin: components["schemas"]["DocumentOrigin"];
            /** Format: date-time */
            received_at: string;
            repo_id: string;
            /** @description The captured request that contained the document. It may have been removed since. */
            request_id: string;
            /** Format: int64 */
            size_bytes: number;
            status: components["schemas"]["DocumentStatus"];
            /**
             * Format: date-time
             * @description When the document was replaced (by the source system, or by a newer copy of the upstream) or deleted. The source system does not read it any more; deliveries continue, and copies stay. The requests of the `doc_id` tell what the source system did.
             */
            superseded_at: string | null;
        };
        SingleDocumentResponse: {
            data: components["schemas"]["SingleDocument"];
        };
        SingleRepository: {
            attributes: components["schemas"]["SingleRepositoryAttributes"];
            id: string;
            /** @constant */
            type: "repository";
        };
        SingleRepositoryAttributes: {
            accepts_mcreate: boolean;
            /**
             * Format: int64
             * @description The number of active certificates.
             */
            active_certificates: number;
            certificates: components["schemas"]["RepositoryCertificate"][];
            connections: components["schemas"]["RepositoryConnection"][];
            /** Format: date-time */
            created_at: string;
            /** Format: int64 */
            document_count: number;
            /**
             * Format: date-time
             * @description When the last request that names the repository arrived, refused ones included. Null if none is stored.
             */
            last_request_at: string | null;
            name: string;
            repo_id: string;
            signature_verification: boolean;
            signed_parameter_order: components["schemas"]["SignedParameterOrder"];
            status: components["schemas"]["ActivityStatus"];
            /** Format: date-time */
            updated_at: string;
            /** @description The content server that the source system used before. Null if there is none. The private key is never returned, nor user and password of the proxy. */
            upstream: components["schemas"]["Upstream"] | null;
            /** @description Conditions that an operator should know. Empty for an inactive repository. */
            warnings: components["schemas"]["RepositoryWarning"][];
        };
        SingleRepositoryResponse: {
            data: components["schemas"]["SingleRepository"];
        };
        StartedBulkRetry: {
            attributes: components["schemas"]["StartedBulkRetryAttributes"];
            id: string | null;
            /** @constant */
            type: "bulk_retry";
        };
        StartedBulkRetryAttributes: {
            /** @description `retry`: failed deliveries. `replay`, `acknowledge`: the requests of discarded documents, or these documents. `deliver`: documents to a destination that was connected later. */
            action: components["schemas"]["BulkAction"];
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            filter: components["schemas"]["BulkRetryFilter"];
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted.
             */
            matched_deliveries: number;
            /**
             * Format: int64
             * @description Counted at the start. For `deliver`, at most 10,000 are counted, and the number grows if more are taken.
             */
            matched_documents: number;
            /**
             * Format: int64
             * @description Deliveries that were made again, that the documents of the replays have, or that were planned.
             */
            retried_deliveries: number;
            /**
             * Format: int64
             * @description Documents to which the action was applied.
             */
            retried_documents: number;
            /**
             * Format: int64
             * @description Documents to which it could not be applied, such as those whose request was refused again or has no body any more, or that the filter of the connection passes over.
             */
            skipped_documents: number;
            status: components["schemas"]["StartedBulkRetryStatus"];
        };
        StartedBulkRetryResponse: {
            data: components["schemas"]["StartedBulkRetry"];
        };
        StartedBulkRetryStatus: "dry_run" | "running" | "completed" | "cancelled";
        Stats: {
            attributes: components["schemas"]["StatsAttributes"];
            id: string;
            /** @constant */
            type: "stats";
        };
        StatsAttributes: {
            attempts: components["schemas"]["AttemptCounts"];
            /**
             * Format: date-time
             * @description Start of the range: `date_from`, rounded down to a whole hour or day in UTC.
             */
            date_from: string;
            /**
             * Format: date-time
             * @description End of the range, exclusive: `date_to`, rounded up to a whole hour or day in UTC.
             */
            date_to: string;
            deliveries: components["schemas"]["DeliveryCounts"];
            /** @description Documents received in the range, by their present status. Null with `destination_id` or `connector_type`: a document may go to several destinations. */
            documents: components["schemas"]["DocumentCounts"] | null;
            /** @description The 10 most frequent error codes of these attempts. */
            errors: components["schemas"]["ErrorCount"][];
            /** @description `hour` for a range of up to 7 days, otherwise `day`. */
            interval: components["schemas"]["StatsInterval"];
            latency: components["schemas"]["Latency"];
            /** @description The oldest `pending` or `retrying` delivery of each destination at present, the oldest first: at most 100. Null with `repo_id`. */
            oldest_deliveries: components["schemas"]["OldestDelivery"][] | null;
            present: components["schemas"]["PresentCounts"];
            /** @description Every hour or day of the range. */
            series: components["schemas"]["StatsPeriod"][];
        };
        StatsInterval: "hour" | "day";
        StatsPeriod: {
            /**
             * Format: int64
             * @description Attempts that have delivered a document.
             */
            delivered: number;
            /**
             * Format: int64
             * @description Attempts that have failed.
             */
            failed: number;
            latency: components["schemas"]["Latency"];
            /**
             * Format: int64
             * @description Documents received. Null if `documents` is null.
             */
            received: number | null;
            /**
             * Format: date-time
             * @description Start of the hour or day.
             */
            start: string;
        };
        StatsResponse: {
            data: components["schemas"]["Stats"];
        };
        TestDocument: {
            /** @description The document. */
            document_id: string;
            /** @description The captured request that contains it. */
            request_id: string;
        };
        TestDocumentResponse: {
            data: components["schemas"]["TestDocument"];
        };
        TestResult: {
            message: string;
            status: components["schemas"]["TestStatus"];
        };
        TestResultResponse: {
            data: components["schemas"]["TestResult"];
        };
        TestStatus: "success" | "failed";
        Tier: "standard" | "compliance";
        TriedField: {
            name: string;
            /** @description Why there is no value. */
            problem: string | null;
            /** @description What the path finds in the answer. Null if it finds no value. */
            value: string | null;
        };
        TriedStep: {
            /**
             * @description The answer, without secrets: at most its first 20,000 characters. Null if there was none.
             * @example {"exports":{"COUNT":"1"},"tables":{"CONNECTIONS":[{"SAP_OBJECT":"RMRP","OBJECT_ID":"51056001012026"}]}}
             */
            answer: string | null;
            /** @description Whether the answer is longer. */
            answer_truncated: boolean;
            /**
             * Format: date-time
             * @description When the step ended.
             */
            at: string;
            /** @description Why the step is not done. If it is done: why fields that are optional have no value, or null if each has one. */
            error: string | null;
            /**
             * @description Each field of the step, if there was an answer.
             * @example [
             *       {
             *         "name": "erp_object_id",
             *         "value": "51056001012026",
             *         "problem": null
             *       }
             *     ]
             */
            fields: components["schemas"]["TriedField"][];
            name: string;
            /** @description What was sent, without headers. Null if the step made no call. */
            request: components["schemas"]["EnrichmentCall"] | null;
            /** @description Of the last try. `waiting`: a value that the call needs is not known yet, or the relay was too busy to begin it. `incomplete`: the answer lacks a field. `failed`: there was no answer. */
            status: components["schemas"]["EnrichmentStepStatus"];
        };
        TruncationReason: "too_large" | "incomplete" | "not_json" | "memory" | "refused" | "unread";
        UnwiredRepository: {
            id: string;
            name: string;
            repo_id: string;
        };
        UpdatedConnectionMeta: {
            /**
             * Format: int64
             * @description Held deliveries that are cancelled because their destination was removed.
             */
            cancelled_deliveries: number;
        };
        UpdatedConnectionResponse: {
            data: components["schemas"]["Connection"];
            /** @description Present if deliveries are cancelled. */
            meta?: components["schemas"]["UpdatedConnectionMeta"];
        };
        UpdatedMetadata: {
            doc_id: string;
            /** Format: int64 */
            documents: number;
            metadata: components["schemas"]["DocumentMetadata"];
            repo_id: string;
        };
        UpdatedMetadataResponse: {
            data: components["schemas"]["UpdatedMetadata"];
        };
        Upstream: {
            /** @description Address ranges of which one must contain the address of the content server. What the operator forbids stays forbidden. Null restricts nothing more. */
            allowed_cidrs: (string)[] | null;
            /** @description The `authId` under which the content server knows the certificate. Null if requests are not signed. */
            auth_id: string | null;
            /** @description The authority that is trusted for the TLS connection, in PEM, in place of the public ones. */
            ca_certificate: string | null;
            /** @description The certificate with which requests are signed, in PEM. Null if they are not signed. */
            certificate: string | null;
            /**
             * @description The name of the repository there (`contRep`).
             * @example Z1
             */
            cont_rep: string;
            /** @description Whether documents that are fetched are delivered to the destinations of the repository, as if they had arrived now. */
            delivers: boolean;
            /**
             * @description The HTTP proxy through which the content server is asked, such as `http://user:password@outgoing.example:3128`. User and password are returned as `***`; sent back like that, the stored ones are kept. Null if there is none: the settings of the installation apply.
             * @example http://***@outgoing.example:3128
             */
            proxy_url: string | null;
            /**
             * @description The address of the content server without the query, such as `https://archive.example/archive`.
             * @example https://archive.example/archive
             */
            url: string;
        };
        UpstreamInput: {
            /**
             * @description Address ranges of which one must contain the address of the content server. What the operator forbids stays forbidden. Null restricts nothing more.
             * @default null
             */
            allowed_cidrs?: (string)[] | null;
            /**
             * @description The `authId` under which the content server knows the certificate. Null if requests are not signed.
             * @default null
             */
            auth_id?: string | null;
            /**
             * @description The authority that is trusted for the TLS connection, in PEM, in place of the public ones.
             * @default null
             */
            ca_certificate?: string | null;
            /**
             * @description The certificate with which requests are signed, in PEM. Null if they are not signed.
             * @default null
             */
            certificate?: string | null;
            /**
             * @description The name of the repository there (`contRep`).
             * @example Z1
             */
            cont_rep: string;
            /**
             * @description Whether documents that are fetched are delivered to the destinations of the repository, as if they had arrived now.
             * @default false
             */
            delivers?: boolean;
            /** @description The private key of the certificate, in PEM without a passphrase. Never returned. If omitted, the stored one is kept; it is required if `url`, `certificate`, `ca_certificate` or the address in `proxy_url` changes. */
            private_key?: string;
            /**
             * @description The HTTP proxy through which the content server is asked, such as `http://user:password@outgoing.example:3128`. User and password are returned as `***`; sent back like that, the stored ones are kept. Null if there is none: the settings of the installation apply.
             * @default null
             * @example http://***@outgoing.example:3128
             */
            proxy_url?: string | null;
            /**
             * @description The address of the content server without the query, such as `https://archive.example/archive`.
             * @example https://archive.example/archive
             */
            url: string;
        };
        Wait: {
            connection_id: string | null;
            connection_name: string | null;
            reason: components["schemas"]["WaitReason"];
        };
        WaitReason: "attempt" | "slot" | "circuit" | "connection" | "data" | "paused" | "worker";
    };
    responses: {
        /** @description The current state of the resource does not allow the request. */
        Conflict: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "conflict",
                 *         "message": "The current state of the resource does not allow the request.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#conflict"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The level of the API key is too low. */
        Forbidden: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "forbidden",
                 *         "message": "The level of the API key is too low.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#forbidden"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description What the request asks for has been removed. */
        Gone: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "gone",
                 *         "message": "What the request asks for has been removed.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#gone"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unexpected server error. Report it together with its request_id. */
        InternalError: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "internal_error",
                 *         "message": "Unexpected server error. Report it together with its request_id.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#internal_error"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The request is malformed: invalid JSON, a missing field, a wrong type, an unknown key or an invalid query value. */
        InvalidRequest: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "invalid_request",
                 *         "message": "The request is malformed: invalid JSON, a missing field, a wrong type, an unknown key or an invalid query value.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#invalid_request"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The resource does not exist or belongs to another workspace. Both cases return the same response. */
        NotFound: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "not_found",
                 *         "message": "The resource does not exist or belongs to another workspace. Both cases return the same response.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#not_found"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body exceeds the size limit. */
        PayloadTooLarge: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "payload_too_large",
                 *         "message": "The body exceeds the size limit.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#payload_too_large"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The resource has changed since the `ETag` in `If-Match` was returned. */
        PreconditionFailed: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "precondition_failed",
                 *         "message": "The resource has changed since the `ETag` in `If-Match` was returned.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#precondition_failed"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The range of bytes begins behind the last byte. The header `content-range` contains the size. */
        RangeNotSatisfiable: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "range_not_satisfiable",
                 *         "message": "The range of bytes begins behind the last byte. The header `content-range` contains the size.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#range_not_satisfiable"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests of this API key, person or workspace are running or waiting, it has used too many values of `Idempotency-Key`, or too many requests with an invalid API key came from this IP address. */
        RateLimited: {
            headers: {
                "retry-after": components["headers"]["RetryAfter"];
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "rate_limited",
                 *         "message": "Too many requests of this API key, person or workspace are running or waiting, it has used too many values of `Idempotency-Key`, or too many requests with an invalid API key came from this IP address.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#rate_limited"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key is missing or is not valid for this workspace. */
        Unauthorized: {
            headers: {
                "www-authenticate": "Bearer";
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unauthorized",
                 *         "message": "The API key is missing or is not valid for this workspace.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#unauthorized"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A dependency, such as the database or the content store, is unreachable or busy. A change either took effect completely or not at all. */
        Unavailable: {
            headers: {
                /** @description Seconds to wait before the next request, if known. */
                "retry-after"?: number;
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unavailable",
                 *         "message": "A dependency, such as the database or the content store, is unreachable or busy. A change either took effect completely or not at all.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#unavailable"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is not application/json, or has a content encoding. */
        UnsupportedMediaType: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unsupported_media_type",
                 *         "message": "The body is not application/json, or has a content encoding.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#unsupported_media_type"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is well-formed but contains invalid values. `details` lists each of them. */
        ValidationFailed: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                "x-relay-version": components["headers"]["RelayVersion"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "validation_failed",
                 *         "message": "The body is well-formed but contains invalid values. `details` lists each of them.",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "doc_url": "https://relay.example/docs/errors#validation_failed"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The version of the relay that answers. */
        RelayVersion: string;
        /** @description The id of this request. Quote it when you contact the operator. */
        RequestId: string;
        /** @description Seconds to wait before the next request. */
        RetryAfter: number;
    };
    pathItems: never;
}
export type AcknowledgedDocumentMeta = components['schemas']['AcknowledgedDocumentMeta'];
export type AcknowledgedDocumentResponse = components['schemas']['AcknowledgedDocumentResponse'];
export type ActivityStatus = components['schemas']['ActivityStatus'];
export type ActivityStatusInput = components['schemas']['ActivityStatusInput'];
export type ActorType = components['schemas']['ActorType'];
export type AffectedDestination = components['schemas']['AffectedDestination'];
export type ApiKey = components['schemas']['ApiKey'];
export type ApiKeyAttributes = components['schemas']['ApiKeyAttributes'];
export type ApiKeyInput = components['schemas']['ApiKeyInput'];
export type ApiKeyList = components['schemas']['ApiKeyList'];
export type ApiKeyWithSecret = components['schemas']['ApiKeyWithSecret'];
export type ApiKeyWithSecretAttributes = components['schemas']['ApiKeyWithSecretAttributes'];
export type ApiKeyWithSecretResponse = components['schemas']['ApiKeyWithSecretResponse'];
export type AttemptCounts = components['schemas']['AttemptCounts'];
export type AttemptedDestination = components['schemas']['AttemptedDestination'];
export type AttemptedDestinationAttributes = components['schemas']['AttemptedDestinationAttributes'];
export type AttemptedDestinationResponse = components['schemas']['AttemptedDestinationResponse'];
export type AttemptError = components['schemas']['AttemptError'];
export type AttemptOutcome = components['schemas']['AttemptOutcome'];
export type AuditEvent = components['schemas']['AuditEvent'];
export type AuditEventInput = components['schemas']['AuditEventInput'];
export type AuditLog = components['schemas']['AuditLog'];
export type AuditLogAttributes = components['schemas']['AuditLogAttributes'];
export type AuditLogList = components['schemas']['AuditLogList'];
export type AuditSubjectType = components['schemas']['AuditSubjectType'];
export type AuditSubjectTypeInput = components['schemas']['AuditSubjectTypeInput'];
export type BulkAction = components['schemas']['BulkAction'];
export type BulkDeliveryInput = components['schemas']['BulkDeliveryInput'];
export type BulkRetry = components['schemas']['BulkRetry'];
export type BulkRetryAttributes = components['schemas']['BulkRetryAttributes'];
export type BulkRetryFilter = components['schemas']['BulkRetryFilter'];
export type BulkRetryInput = components['schemas']['BulkRetryInput'];
export type BulkRetryList = components['schemas']['BulkRetryList'];
export type BulkRetryStatus = components['schemas']['BulkRetryStatus'];
export type CapturedRequest = components['schemas']['CapturedRequest'];
export type CapturedRequestAttributes = components['schemas']['CapturedRequestAttributes'];
export type CapturedRequestList = components['schemas']['CapturedRequestList'];
export type Certificate = components['schemas']['Certificate'];
export type CertificateAttributes = components['schemas']['CertificateAttributes'];
export type CertificateChange = components['schemas']['CertificateChange'];
export type CertificateInput = components['schemas']['CertificateInput'];
export type CertificateList = components['schemas']['CertificateList'];
export type CertificateReceivedData = components['schemas']['CertificateReceivedData'];
export type CertificateReceivedEvent = components['schemas']['CertificateReceivedEvent'];
export type CertificateResponse = components['schemas']['CertificateResponse'];
export type CertificateWarning = components['schemas']['CertificateWarning'];
export type CertificateWarningCode = components['schemas']['CertificateWarningCode'];
export type Channel = components['schemas']['Channel'];
export type ChannelInput = components['schemas']['ChannelInput'];
export type CircuitState = components['schemas']['CircuitState'];
export type Connection = components['schemas']['Connection'];
export type ConnectionChange = components['schemas']['ConnectionChange'];
export type ConnectionDestination = components['schemas']['ConnectionDestination'];
export type ConnectionFilter = components['schemas']['ConnectionFilter'];
export type ConnectionFilterInput = components['schemas']['ConnectionFilterInput'];
export type ConnectionInput = components['schemas']['ConnectionInput'];
export type ConnectionList = components['schemas']['ConnectionList'];
export type ConnectionPreview = components['schemas']['ConnectionPreview'];
export type ConnectionPreviewInput = components['schemas']['ConnectionPreviewInput'];
export type ConnectionPreviewResponse = components['schemas']['ConnectionPreviewResponse'];
export type ConnectionRepository = components['schemas']['ConnectionRepository'];
export type ConnectionResponse = components['schemas']['ConnectionResponse'];
export type ConnectionSettings = components['schemas']['ConnectionSettings'];
export type ConnectionSettingsInput = components['schemas']['ConnectionSettingsInput'];
export type ConnectorType = components['schemas']['ConnectorType'];
export type ConnectorTypeDescription = components['schemas']['ConnectorTypeDescription'];
export type ConnectorTypeDescriptionAttributes = components['schemas']['ConnectorTypeDescriptionAttributes'];
export type ConnectorTypeDescriptionList = components['schemas']['ConnectorTypeDescriptionList'];
export type ConnectorTypeInput = components['schemas']['ConnectorTypeInput'];
export type CurrentDeliveryCounts = components['schemas']['CurrentDeliveryCounts'];
export type CursorMeta = components['schemas']['CursorMeta'];
export type DeletedConnection = components['schemas']['DeletedConnection'];
export type Delivery = components['schemas']['Delivery'];
export type DeliveryAttempt = components['schemas']['DeliveryAttempt'];
export type DeliveryAttemptAttributes = components['schemas']['DeliveryAttemptAttributes'];
export type DeliveryAttemptList = components['schemas']['DeliveryAttemptList'];
export type DeliveryCancelledData = components['schemas']['DeliveryCancelledData'];
export type DeliveryCancelledEvent = components['schemas']['DeliveryCancelledEvent'];
export type DeliveryCounts = components['schemas']['DeliveryCounts'];
export type DeliveryDeliveredData = components['schemas']['DeliveryDeliveredData'];
export type DeliveryDeliveredEvent = components['schemas']['DeliveryDeliveredEvent'];
export type DeliveryEnd = components['schemas']['DeliveryEnd'];
export type DeliveryFailedData = components['schemas']['DeliveryFailedData'];
export type DeliveryFailedEvent = components['schemas']['DeliveryFailedEvent'];
export type DeliveryProblem = components['schemas']['DeliveryProblem'];
export type DeliveryStatus = components['schemas']['DeliveryStatus'];
export type DeliveryStatusInput = components['schemas']['DeliveryStatusInput'];
export type Destination = components['schemas']['Destination'];
export type DestinationAttributes = components['schemas']['DestinationAttributes'];
export type DestinationChange = components['schemas']['DestinationChange'];
export type DestinationConfigBlob = components['schemas']['DestinationConfigBlob'];
export type DestinationConfigContentServer = components['schemas']['DestinationConfigContentServer'];
export type DestinationConfigDirectory = components['schemas']['DestinationConfigDirectory'];
export type DestinationConfigDrive = components['schemas']['DestinationConfigDrive'];
export type DestinationConfigEmail = components['schemas']['DestinationConfigEmail'];
export type DestinationConfigObjstore = components['schemas']['DestinationConfigObjstore'];
export type DestinationConfigSftp = components['schemas']['DestinationConfigSftp'];
export type DestinationConfigTeamsite = components['schemas']['DestinationConfigTeamsite'];
export type DestinationConfigWebhook = components['schemas']['DestinationConfigWebhook'];
export type DestinationConnection = components['schemas']['DestinationConnection'];
export type DestinationCredentialsBlob = components['schemas']['DestinationCredentialsBlob'];
export type DestinationCredentialsContentServer = components['schemas']['DestinationCredentialsContentServer'];
export type DestinationCredentialsDirectory = components['schemas']['DestinationCredentialsDirectory'];
export type DestinationCredentialsDrive = components['schemas']['DestinationCredentialsDrive'];
export type DestinationCredentialsDriveServiceAccount = components['schemas']['DestinationCredentialsDriveServiceAccount'];
export type DestinationCredentialsEmail = components['schemas']['DestinationCredentialsEmail'];
export type DestinationCredentialsObjstore = components['schemas']['DestinationCredentialsObjstore'];
export type DestinationCredentialsSftp = components['schemas']['DestinationCredentialsSftp'];
export type DestinationCredentialsTeamsite = components['schemas']['DestinationCredentialsTeamsite'];
export type DestinationCredentialsWebhook = components['schemas']['DestinationCredentialsWebhook'];
export type DestinationInput = components['schemas']['DestinationInput'];
export type DestinationInputBlob = components['schemas']['DestinationInputBlob'];
export type DestinationInputContentServer = components['schemas']['DestinationInputContentServer'];
export type DestinationInputDirectory = components['schemas']['DestinationInputDirectory'];
export type DestinationInputDrive = components['schemas']['DestinationInputDrive'];
export type DestinationInputEmail = components['schemas']['DestinationInputEmail'];
export type DestinationInputObjstore = components['schemas']['DestinationInputObjstore'];
export type DestinationInputSftp = components['schemas']['DestinationInputSftp'];
export type DestinationInputTeamsite = components['schemas']['DestinationInputTeamsite'];
export type DestinationInputWebhook = components['schemas']['DestinationInputWebhook'];
export type DestinationList = components['schemas']['DestinationList'];
export type DestinationResponse = components['schemas']['DestinationResponse'];
export type DestinationStats = components['schemas']['DestinationStats'];
export type DestinationStatsAttributes = components['schemas']['DestinationStatsAttributes'];
export type DestinationStatsList = components['schemas']['DestinationStatsList'];
export type DestinationStatsPeriod = components['schemas']['DestinationStatsPeriod'];
export type DestinationStatus = components['schemas']['DestinationStatus'];
export type DestinationTest = components['schemas']['DestinationTest'];
export type DestinationTestBlob = components['schemas']['DestinationTestBlob'];
export type DestinationTestChange = components['schemas']['DestinationTestChange'];
export type DestinationTestContentServer = components['schemas']['DestinationTestContentServer'];
export type DestinationTestDirectory = components['schemas']['DestinationTestDirectory'];
export type DestinationTestDrive = components['schemas']['DestinationTestDrive'];
export type DestinationTestEmail = components['schemas']['DestinationTestEmail'];
export type DestinationTestObjstore = components['schemas']['DestinationTestObjstore'];
export type DestinationTestSftp = components['schemas']['DestinationTestSftp'];
export type DestinationTestTeamsite = components['schemas']['DestinationTestTeamsite'];
export type DestinationTestWebhook = components['schemas']['DestinationTestWebhook'];
export type DestinationWarning = components['schemas']['DestinationWarning'];
export type DestinationWarningCode = components['schemas']['DestinationWarningCode'];
export type DiscardedDocumentsInput = components['schemas']['DiscardedDocumentsInput'];
export type DiscardedGroup = components['schemas']['DiscardedGroup'];
export type DiscardedGroupAttributes = components['schemas']['DiscardedGroupAttributes'];
export type DiscardedGroupList = components['schemas']['DiscardedGroupList'];
export type Document = components['schemas']['Document'];
export type DocumentAcknowledgedData = components['schemas']['DocumentAcknowledgedData'];
export type DocumentAcknowledgedEvent = components['schemas']['DocumentAcknowledgedEvent'];
export type DocumentAppendedData = components['schemas']['DocumentAppendedData'];
export type DocumentAppendedEvent = components['schemas']['DocumentAppendedEvent'];
export type DocumentAttributes = components['schemas']['DocumentAttributes'];
export type DocumentCounts = components['schemas']['DocumentCounts'];
export type DocumentDeletedData = components['schemas']['DocumentDeletedData'];
export type DocumentDeletedEvent = components['schemas']['DocumentDeletedEvent'];
export type DocumentDeliveredData = components['schemas']['DocumentDeliveredData'];
export type DocumentDeliveredEvent = components['schemas']['DocumentDeliveredEvent'];
export type DocumentDiscardedData = components['schemas']['DocumentDiscardedData'];
export type DocumentDiscardedEvent = components['schemas']['DocumentDiscardedEvent'];
export type DocumentEnrichment = components['schemas']['DocumentEnrichment'];
export type DocumentErasedData = components['schemas']['DocumentErasedData'];
export type DocumentErasedEvent = components['schemas']['DocumentErasedEvent'];
export type DocumentFailedData = components['schemas']['DocumentFailedData'];
export type DocumentFailedEvent = components['schemas']['DocumentFailedEvent'];
export type DocumentList = components['schemas']['DocumentList'];
export type DocumentMetadata = components['schemas']['DocumentMetadata'];
export type DocumentMetadataChange = components['schemas']['DocumentMetadataChange'];
export type DocumentMetadataMessage = components['schemas']['DocumentMetadataMessage'];
export type DocumentMetadataUpdatedData = components['schemas']['DocumentMetadataUpdatedData'];
export type DocumentMetadataUpdatedEvent = components['schemas']['DocumentMetadataUpdatedEvent'];
export type DocumentMigration = components['schemas']['DocumentMigration'];
export type DocumentMigrationAttributes = components['schemas']['DocumentMigrationAttributes'];
export type DocumentMigrationList = components['schemas']['DocumentMigrationList'];
export type DocumentMigrationMode = components['schemas']['DocumentMigrationMode'];
export type DocumentMigrationResponse = components['schemas']['DocumentMigrationResponse'];
export type DocumentMigrationStatus = components['schemas']['DocumentMigrationStatus'];
export type DocumentOrigin = components['schemas']['DocumentOrigin'];
export type DocumentReceivedData = components['schemas']['DocumentReceivedData'];
export type DocumentReceivedEvent = components['schemas']['DocumentReceivedEvent'];
export type DocumentSearchResult = components['schemas']['DocumentSearchResult'];
export type DocumentStatus = components['schemas']['DocumentStatus'];
export type DocumentStatusInput = components['schemas']['DocumentStatusInput'];
export type DocumentSupersededData = components['schemas']['DocumentSupersededData'];
export type DocumentSupersededEvent = components['schemas']['DocumentSupersededEvent'];
export type Enrichment = components['schemas']['Enrichment'];
export type EnrichmentAttributes = components['schemas']['EnrichmentAttributes'];
export type EnrichmentCall = components['schemas']['EnrichmentCall'];
export type EnrichmentCallKind = components['schemas']['EnrichmentCallKind'];
export type EnrichmentChange = components['schemas']['EnrichmentChange'];
export type EnrichmentCounts = components['schemas']['EnrichmentCounts'];
export type EnrichmentField = components['schemas']['EnrichmentField'];
export type EnrichmentFieldInput = components['schemas']['EnrichmentFieldInput'];
export type EnrichmentHttp = components['schemas']['EnrichmentHttp'];
export type EnrichmentHttpInput = components['schemas']['EnrichmentHttpInput'];
export type EnrichmentHttpStep = components['schemas']['EnrichmentHttpStep'];
export type EnrichmentHttpStepInput = components['schemas']['EnrichmentHttpStepInput'];
export type EnrichmentInput = components['schemas']['EnrichmentInput'];
export type EnrichmentInvoiceStep = components['schemas']['EnrichmentInvoiceStep'];
export type EnrichmentInvoiceStepInput = components['schemas']['EnrichmentInvoiceStepInput'];
export type EnrichmentLinkStep = components['schemas']['EnrichmentLinkStep'];
export type EnrichmentLinkStepInput = components['schemas']['EnrichmentLinkStepInput'];
export type EnrichmentList = components['schemas']['EnrichmentList'];
export type EnrichmentMethod = components['schemas']['EnrichmentMethod'];
export type EnrichmentMethodInput = components['schemas']['EnrichmentMethodInput'];
export type EnrichmentResponse = components['schemas']['EnrichmentResponse'];
export type EnrichmentRfcStep = components['schemas']['EnrichmentRfcStep'];
export type EnrichmentRfcStepInput = components['schemas']['EnrichmentRfcStepInput'];
export type EnrichmentStatus = components['schemas']['EnrichmentStatus'];
export type EnrichmentStep = components['schemas']['EnrichmentStep'];
export type EnrichmentStepInput = components['schemas']['EnrichmentStepInput'];
export type EnrichmentStepOutcome = components['schemas']['EnrichmentStepOutcome'];
export type EnrichmentStepStatus = components['schemas']['EnrichmentStepStatus'];
export type EnrichmentTrial = components['schemas']['EnrichmentTrial'];
export type EnrichmentTrialInput = components['schemas']['EnrichmentTrialInput'];
export type EnrichmentTrialResponse = components['schemas']['EnrichmentTrialResponse'];
export type Error = components['schemas']['Error'];
export type ErrorBody = components['schemas']['ErrorBody'];
export type ErrorCode = components['schemas']['ErrorCode'];
export type ErrorCount = components['schemas']['ErrorCount'];
export type ErrorDetail = components['schemas']['ErrorDetail'];
export type Event = components['schemas']['Event'];
export type EventAttributes = components['schemas']['EventAttributes'];
export type EventList = components['schemas']['EventList'];
export type EventListMeta = components['schemas']['EventListMeta'];
export type EventName = components['schemas']['EventName'];
export type EventNameInput = components['schemas']['EventNameInput'];
export type EventReplayInput = components['schemas']['EventReplayInput'];
export type EventSubscription = components['schemas']['EventSubscription'];
export type EventSubscriptionAttributes = components['schemas']['EventSubscriptionAttributes'];
export type EventSubscriptionChange = components['schemas']['EventSubscriptionChange'];
export type EventSubscriptionInput = components['schemas']['EventSubscriptionInput'];
export type EventSubscriptionList = components['schemas']['EventSubscriptionList'];
export type EventSubscriptionResponse = components['schemas']['EventSubscriptionResponse'];
export type FailureGroup = components['schemas']['FailureGroup'];
export type FailureGroupAttributes = components['schemas']['FailureGroupAttributes'];
export type FailureGroupList = components['schemas']['FailureGroupList'];
export type FailureStatus = components['schemas']['FailureStatus'];
export type FailureStatusInput = components['schemas']['FailureStatusInput'];
export type FieldType = components['schemas']['FieldType'];
export type FieldTypeInput = components['schemas']['FieldTypeInput'];
export type FilterCondition = components['schemas']['FilterCondition'];
export type IncidentEvent = components['schemas']['IncidentEvent'];
export type IncidentEventInput = components['schemas']['IncidentEventInput'];
export type KeyLevel = components['schemas']['KeyLevel'];
export type KeyLevelInput = components['schemas']['KeyLevelInput'];
export type LateData = components['schemas']['LateData'];
export type LateDataStatus = components['schemas']['LateDataStatus'];
export type LateDocumentData = components['schemas']['LateDocumentData'];
export type Latency = components['schemas']['Latency'];
export type LinkList = components['schemas']['LinkList'];
export type NamedResource = components['schemas']['NamedResource'];
export type Notice = components['schemas']['Notice'];
export type NoticeAttributes = components['schemas']['NoticeAttributes'];
export type NoticeCertificate = components['schemas']['NoticeCertificate'];
export type NoticeData = components['schemas']['NoticeData'];
export type NoticeDestination = components['schemas']['NoticeDestination'];
export type NoticeDocument = components['schemas']['NoticeDocument'];
export type NoticeEnrichment = components['schemas']['NoticeEnrichment'];
export type NoticeError = components['schemas']['NoticeError'];
export type NoticeEventType = components['schemas']['NoticeEventType'];
export type NoticeList = components['schemas']['NoticeList'];
export type NoticeRepository = components['schemas']['NoticeRepository'];
export type NoticeStatus = components['schemas']['NoticeStatus'];
export type NoticeSubscription = components['schemas']['NoticeSubscription'];
export type Notification = components['schemas']['Notification'];
export type NotificationAttributes = components['schemas']['NotificationAttributes'];
export type NotificationChange = components['schemas']['NotificationChange'];
export type NotificationInput = components['schemas']['NotificationInput'];
export type NotificationList = components['schemas']['NotificationList'];
export type NotificationResponse = components['schemas']['NotificationResponse'];
export type OldestDelivery = components['schemas']['OldestDelivery'];
export type OldestDestinationDelivery = components['schemas']['OldestDestinationDelivery'];
export type OnResume = components['schemas']['OnResume'];
export type OnResumeInput = components['schemas']['OnResumeInput'];
export type OpenDelivery = components['schemas']['OpenDelivery'];
export type PageMeta = components['schemas']['PageMeta'];
export type PresentCounts = components['schemas']['PresentCounts'];
export type PreviewedDocument = components['schemas']['PreviewedDocument'];
export type RelayCertificateExpiringMessage = components['schemas']['RelayCertificateExpiringMessage'];
export type RelayCertificateRecoveredMessage = components['schemas']['RelayCertificateRecoveredMessage'];
export type RelayDeliveryFailedMessage = components['schemas']['RelayDeliveryFailedMessage'];
export type RelayDeliveryRecoveredMessage = components['schemas']['RelayDeliveryRecoveredMessage'];
export type RelayDestinationFailingMessage = components['schemas']['RelayDestinationFailingMessage'];
export type RelayDestinationRecoveredMessage = components['schemas']['RelayDestinationRecoveredMessage'];
export type RelayEnrichmentFailingMessage = components['schemas']['RelayEnrichmentFailingMessage'];
export type RelayEnrichmentRecoveredMessage = components['schemas']['RelayEnrichmentRecoveredMessage'];
export type RelayEventSubscriptionFailingMessage = components['schemas']['RelayEventSubscriptionFailingMessage'];
export type RelayEventSubscriptionRecoveredMessage = components['schemas']['RelayEventSubscriptionRecoveredMessage'];
export type RelayNotificationTestMessage = components['schemas']['RelayNotificationTestMessage'];
export type RelayRepositoryNotConnectedMessage = components['schemas']['RelayRepositoryNotConnectedMessage'];
export type RelayRepositoryRecoveredMessage = components['schemas']['RelayRepositoryRecoveredMessage'];
export type RelaySourceRecoveredMessage = components['schemas']['RelaySourceRecoveredMessage'];
export type RelaySourceSilentMessage = components['schemas']['RelaySourceSilentMessage'];
export type RelayUpstreamFailingMessage = components['schemas']['RelayUpstreamFailingMessage'];
export type RelayUpstreamRecoveredMessage = components['schemas']['RelayUpstreamRecoveredMessage'];
export type Removal = components['schemas']['Removal'];
export type RemovalResponse = components['schemas']['RemovalResponse'];
export type Replay = components['schemas']['Replay'];
export type ReplayResponse = components['schemas']['ReplayResponse'];
export type Repository = components['schemas']['Repository'];
export type RepositoryAttributes = components['schemas']['RepositoryAttributes'];
export type RepositoryCertificate = components['schemas']['RepositoryCertificate'];
export type RepositoryChange = components['schemas']['RepositoryChange'];
export type RepositoryCheck = components['schemas']['RepositoryCheck'];
export type RepositoryCheckInput = components['schemas']['RepositoryCheckInput'];
export type RepositoryCheckProfile = components['schemas']['RepositoryCheckProfile'];
export type RepositoryCheckProfileInput = components['schemas']['RepositoryCheckProfileInput'];
export type RepositoryCheckResponse = components['schemas']['RepositoryCheckResponse'];
export type RepositoryCheckResult = components['schemas']['RepositoryCheckResult'];
export type RepositoryCheckStatus = components['schemas']['RepositoryCheckStatus'];
export type RepositoryConnection = components['schemas']['RepositoryConnection'];
export type RepositoryInput = components['schemas']['RepositoryInput'];
export type RepositoryList = components['schemas']['RepositoryList'];
export type RepositoryResponse = components['schemas']['RepositoryResponse'];
export type RepositoryWarning = components['schemas']['RepositoryWarning'];
export type RepositoryWarningCode = components['schemas']['RepositoryWarningCode'];
export type RetriedDocument = components['schemas']['RetriedDocument'];
export type RetriedDocumentAttributes = components['schemas']['RetriedDocumentAttributes'];
export type RetriedDocumentResponse = components['schemas']['RetriedDocumentResponse'];
export type RfcCredentials = components['schemas']['RfcCredentials'];
export type RfcSettings = components['schemas']['RfcSettings'];
export type RfcSettingsChange = components['schemas']['RfcSettingsChange'];
export type Settings = components['schemas']['Settings'];
export type SettingsAttributes = components['schemas']['SettingsAttributes'];
export type SettingsChange = components['schemas']['SettingsChange'];
export type SettingsResponse = components['schemas']['SettingsResponse'];
export type SignedParameterOrder = components['schemas']['SignedParameterOrder'];
export type SignedParameterOrderInput = components['schemas']['SignedParameterOrderInput'];
export type SingleBulkRetry = components['schemas']['SingleBulkRetry'];
export type SingleBulkRetryAttributes = components['schemas']['SingleBulkRetryAttributes'];
export type SingleBulkRetryResponse = components['schemas']['SingleBulkRetryResponse'];
export type SingleCapturedRequest = components['schemas']['SingleCapturedRequest'];
export type SingleCapturedRequestAttributes = components['schemas']['SingleCapturedRequestAttributes'];
export type SingleCapturedRequestResponse = components['schemas']['SingleCapturedRequestResponse'];
export type SingleDelivery = components['schemas']['SingleDelivery'];
export type SingleDestination = components['schemas']['SingleDestination'];
export type SingleDestinationAttributes = components['schemas']['SingleDestinationAttributes'];
export type SingleDestinationResponse = components['schemas']['SingleDestinationResponse'];
export type SingleDocument = components['schemas']['SingleDocument'];
export type SingleDocumentAttributes = components['schemas']['SingleDocumentAttributes'];
export type SingleDocumentResponse = components['schemas']['SingleDocumentResponse'];
export type SingleRepository = components['schemas']['SingleRepository'];
export type SingleRepositoryAttributes = components['schemas']['SingleRepositoryAttributes'];
export type SingleRepositoryResponse = components['schemas']['SingleRepositoryResponse'];
export type StartedBulkRetry = components['schemas']['StartedBulkRetry'];
export type StartedBulkRetryAttributes = components['schemas']['StartedBulkRetryAttributes'];
export type StartedBulkRetryResponse = components['schemas']['StartedBulkRetryResponse'];
export type StartedBulkRetryStatus = components['schemas']['StartedBulkRetryStatus'];
export type Stats = components['schemas']['Stats'];
export type StatsAttributes = components['schemas']['StatsAttributes'];
export type StatsInterval = components['schemas']['StatsInterval'];
export type StatsPeriod = components['schemas']['StatsPeriod'];
export type StatsResponse = components['schemas']['StatsResponse'];
export type TestDocument = components['schemas']['TestDocument'];
export type TestDocumentResponse = components['schemas']['TestDocumentResponse'];
export type TestResult = components['schemas']['TestResult'];
export type TestResultResponse = components['schemas']['TestResultResponse'];
export type TestStatus = components['schemas']['TestStatus'];
export type Tier = components['schemas']['Tier'];
export type TriedField = components['schemas']['TriedField'];
export type TriedStep = components['schemas']['TriedStep'];
export type TruncationReason = components['schemas']['TruncationReason'];
export type UnwiredRepository = components['schemas']['UnwiredRepository'];
export type UpdatedConnectionMeta = components['schemas']['UpdatedConnectionMeta'];
export type UpdatedConnectionResponse = components['schemas']['UpdatedConnectionResponse'];
export type UpdatedMetadata = components['schemas']['UpdatedMetadata'];
export type UpdatedMetadataResponse = components['schemas']['UpdatedMetadataResponse'];
export type Upstream = components['schemas']['Upstream'];
export type UpstreamInput = components['schemas']['UpstreamInput'];
export type Wait = components['schemas']['Wait'];
export type WaitReason = components['schemas']['WaitReason'];
export type ResponseConflict = components['responses']['Conflict'];
export type ResponseForbidden = components['responses']['Forbidden'];
export type ResponseGone = components['responses']['Gone'];
export type ResponseInternalError = components['responses']['InternalError'];
export type ResponseInvalidRequest = components['responses']['InvalidRequest'];
export type ResponseNotFound = components['responses']['NotFound'];
export type ResponsePayloadTooLarge = components['responses']['PayloadTooLarge'];
export type ResponsePreconditionFailed = components['responses']['PreconditionFailed'];
export type ResponseRangeNotSatisfiable = components['responses']['RangeNotSatisfiable'];
export type ResponseRateLimited = components['responses']['RateLimited'];
export type ResponseUnauthorized = components['responses']['Unauthorized'];
export type ResponseUnavailable = components['responses']['Unavailable'];
export type ResponseUnsupportedMediaType = components['responses']['UnsupportedMediaType'];
export type ResponseValidationFailed = components['responses']['ValidationFailed'];
export type HeaderRelayVersion = components['headers']['RelayVersion'];
export type HeaderRequestId = components['headers']['RequestId'];
export type HeaderRetryAfter = components['headers']['RetryAfter'];
export type $defs = Record<string, never>;
export interface operations {
    listApiKeys: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CK",
                     *           "type": "api_key",
                     *           "attributes": {
                     *             "name": "Dashboard",
                     *             "level": "viewer",
                     *             "user_id": "01K9R4B6ZD8M2V7X0QF3N5T1CJ",
                     *             "expires_at": "2027-11-21T09:00:00.000Z",
                     *             "last_used_at": "2026-11-21T09:10:30.684Z",
                     *             "created_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKeyList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Dashboard",
                 *       "level": "viewer"
                 *     }
                 */
                "application/json": components["schemas"]["ApiKeyInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CK",
                     *         "type": "api_key",
                     *         "attributes": {
                     *           "name": "Dashboard",
                     *           "level": "viewer",
                     *           "user_id": "01K9R4B6ZD8M2V7X0QF3N5T1CJ",
                     *           "expires_at": "2027-11-21T09:00:00.000Z",
                     *           "last_used_at": null,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "key": "relay_01K9R4B6ZD8M2V7X0QF3N5T1CK_q1w2e3r4t5z6u7i8o9p0a1s2d3f4g5h6j7k8l9y1x2c"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKeyWithSecretResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CK
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAuditLogs: {
        parameters: {
            query?: {
                /** @description Only rows after this id, oldest first. Pass the id of the last row that was read, or 00000000000000000000000000 to begin with the oldest. A row is found a minute after the time of its id. Not with `before`. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                after?: string;
                /** @description Only rows before this id. Pass `next_cursor` of the previous page. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                before?: string;
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only entries with this event name. */
                event?: components["schemas"]["AuditEventInput"];
                /** @description Only entries whose event name starts with this text, for example `cert.`. Example: `cert.`. */
                event_prefix?: string;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only entries about the resource with this id. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                subject_id?: string;
                /** @description Only entries about this type of resource. */
                subject_type?: components["schemas"]["AuditSubjectTypeInput"];
                /** @description Only entries caused by this member. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CJ`. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1C4",
                     *           "type": "audit_log",
                     *           "attributes": {
                     *             "event": "document.retried",
                     *             "subject_type": "Document",
                     *             "subject_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *             "description": "Document Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data was retried to Invoice archive.",
                     *             "metadata": {
                     *               "bulk_retry_id": "01K9R4B6ZD8M2V7X0QF3N5T1CX"
                     *             },
                     *             "user_id": "01K9R4B6ZD8M2V7X0QF3N5T1CJ",
                     *             "actor_type": "user",
                     *             "created_at": "2026-11-21T09:10:30.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "per_page": 25,
                     *         "next_cursor": null
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["AuditLogList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    exportAuditLogs: {
        parameters: {
            query?: {
                /** @description Only rows before this id. Pass `next_cursor` of the previous page. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                before?: string;
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only entries with this event name. */
                event?: components["schemas"]["AuditEventInput"];
                /** @description Only entries whose event name starts with this text, for example `cert.`. Example: `cert.`. */
                event_prefix?: string;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only entries about the resource with this id. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                subject_id?: string;
                /** @description Only entries about this type of resource. */
                subject_type?: components["schemas"]["AuditSubjectTypeInput"];
                /** @description Only entries caused by this member. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CJ`. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example created_at,event,subject_type,subject_id,description,user_id,actor_type,metadata
                     *     2026-11-21T08:30:00.000Z,apikey.created,ApiKey,01K9R4B6ZD8M2V7X0QF3N5T1CK,API key Dashboard was created.,,system,{}
                     */
                    "text/csv": string;
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listBulkRetries: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *           "type": "bulk_retry",
                     *           "attributes": {
                     *             "action": "retry",
                     *             "status": "completed",
                     *             "filter": {
                     *               "repo_id": "Z1",
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "error_code": "credentials_refused"
                     *             },
                     *             "matched_documents": 1,
                     *             "matched_deliveries": 1,
                     *             "retried_documents": 1,
                     *             "retried_deliveries": 1,
                     *             "skipped_documents": 0,
                     *             "created_at": "2026-11-21T09:10:30.000Z",
                     *             "ended_at": "2026-11-21T09:10:30.684Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["BulkRetryList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getBulkRetry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CX
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "completed",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 1,
                     *           "retried_deliveries": 1,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": "2026-11-21T09:10:30.684Z",
                     *           "delivered_deliveries": 1,
                     *           "failed_deliveries": 0,
                     *           "open_deliveries": 0
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelBulkRetry: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CX
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "completed",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 1,
                     *           "retried_deliveries": 1,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": "2026-11-21T09:10:30.684Z",
                     *           "delivered_deliveries": 1,
                     *           "failed_deliveries": 0,
                     *           "open_deliveries": 0
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The bulk retry has already ended. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listConnections: {
        parameters: {
            query?: {
                /** @description Only active connections (`true`) or only inactive ones (`false`). */
                is_active?: boolean;
                /** @description The page number, starting at 1. Without `page` and `per_page`, all rows are returned. */
                page?: number;
                /** @description The number of rows per page. Without `page` and `per_page`, all rows are returned. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *           "name": "Invoices to the archive",
                     *           "is_active": true,
                     *           "repositories": [
                     *             {
                     *               "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *               "repo_id": "Z1",
                     *               "description": "Incoming invoices"
                     *             }
                     *           ],
                     *           "destinations": [
                     *             {
                     *               "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "type": "objstore",
                     *               "name": "Invoice archive"
                     *             }
                     *           ],
                     *           "settings": {
                     *             "on_resume": "forward",
                     *             "path_template": "{repo_id}/{doc_id}/{comp_id}",
                     *             "properties": {},
                     *             "filter": {
                     *               "content_types": [
                     *                 "application/pdf"
                     *               ],
                     *               "comp_ids": [
                     *                 "data"
                     *               ],
                     *               "min_bytes": 1,
                     *               "max_bytes": 10000000,
                     *               "fields": {
                     *                 "vendor": "Acme Ltd"
                     *               }
                     *             }
                     *           },
                     *           "held_deliveries": 0,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ConnectionList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createConnection: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Invoices to the archive",
                 *       "repository_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                 *       ],
                 *       "destination_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["ConnectionInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *         "name": "Invoices to the archive",
                     *         "is_active": true,
                     *         "repositories": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "description": "Incoming invoices"
                     *           }
                     *         ],
                     *         "destinations": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "type": "objstore",
                     *             "name": "Invoice archive"
                     *           }
                     *         ],
                     *         "settings": {
                     *           "on_resume": "forward",
                     *           "path_template": "{repo_id}/{doc_id}/{comp_id}",
                     *           "properties": {},
                     *           "filter": {
                     *             "content_types": [
                     *               "application/pdf"
                     *             ],
                     *             "comp_ids": [
                     *               "data"
                     *             ],
                     *             "min_bytes": 1,
                     *             "max_bytes": 10000000,
                     *             "fields": {
                     *               "vendor": "Acme Ltd"
                     *             }
                     *           }
                     *         },
                     *         "held_deliveries": 0,
                     *         "created_at": "2026-11-21T08:30:00.000Z",
                     *         "updated_at": "2026-11-21T08:30:00.000Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ConnectionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CB
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *         "name": "Invoices to the archive",
                     *         "is_active": true,
                     *         "repositories": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "description": "Incoming invoices"
                     *           }
                     *         ],
                     *         "destinations": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "type": "objstore",
                     *             "name": "Invoice archive"
                     *           }
                     *         ],
                     *         "settings": {
                     *           "on_resume": "forward",
                     *           "path_template": "{repo_id}/{doc_id}/{comp_id}",
                     *           "properties": {},
                     *           "filter": {
                     *             "content_types": [
                     *               "application/pdf"
                     *             ],
                     *             "comp_ids": [
                     *               "data"
                     *             ],
                     *             "min_bytes": 1,
                     *             "max_bytes": 10000000,
                     *             "fields": {
                     *               "vendor": "Acme Ltd"
                     *             }
                     *           }
                     *         },
                     *         "held_deliveries": 0,
                     *         "created_at": "2026-11-21T08:30:00.000Z",
                     *         "updated_at": "2026-11-21T08:30:00.000Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ConnectionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteConnection: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CB
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "message": "The connection was deleted."
                     *     }
                     */
                    "application/json": components["schemas"]["DeletedConnection"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateConnection: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CB
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Invoices to the archive",
                 *       "repository_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                 *       ],
                 *       "destination_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *       ],
                 *       "is_active": true,
                 *       "settings": {
                 *         "on_resume": "forward",
                 *         "path_template": "{repo_id}/{doc_id}/{comp_id}",
                 *         "properties": {},
                 *         "filter": {
                 *           "content_types": [
                 *             "application/pdf"
                 *           ],
                 *           "comp_ids": [
                 *             "data"
                 *           ],
                 *           "min_bytes": 0,
                 *           "max_bytes": 0,
                 *           "fields": {
                 *             "vendor": "Acme Ltd"
                 *           }
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["ConnectionChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *         "name": "Invoices to the archive",
                     *         "is_active": true,
                     *         "repositories": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "description": "Incoming invoices"
                     *           }
                     *         ],
                     *         "destinations": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "type": "objstore",
                     *             "name": "Invoice archive"
                     *           }
                     *         ],
                     *         "settings": {
                     *           "on_resume": "forward",
                     *           "path_template": "{repo_id}/{doc_id}/{comp_id}",
                     *           "properties": {},
                     *           "filter": {
                     *             "content_types": [
                     *               "application/pdf"
                     *             ],
                     *             "comp_ids": [
                     *               "data"
                     *             ],
                     *             "min_bytes": 1,
                     *             "max_bytes": 10000000,
                     *             "fields": {
                     *               "vendor": "Acme Ltd"
                     *             }
                     *           }
                     *         },
                     *         "held_deliveries": 0,
                     *         "created_at": "2026-11-21T08:30:00.000Z",
                     *         "updated_at": "2026-11-21T08:30:00.000Z"
                     *       },
                     *       "meta": {
                     *         "cancelled_deliveries": 0
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UpdatedConnectionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    previewConnection: {
        parameters: {
            query?: never;
            header?: {
                /** @description Accepted like that of every `POST`, and without effect: the request changes nothing, so a repetition is executed. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "repository_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["ConnectionPreviewInput"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "documents": [
                     *           {
                     *             "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *             "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *             "repo_id": "Z1",
                     *             "comp_id": "data",
                     *             "content_type": "application/pdf",
                     *             "size_bytes": 48213,
                     *             "received_at": "2026-11-21T09:00:00.000Z",
                     *             "path": "Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data",
                     *             "unmet_condition": null
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ConnectionPreviewResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listConnectorTypes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "objstore",
                     *           "type": "connector_type",
                     *           "attributes": {
                     *             "is_available": true,
                     *             "config_schema": {
                     *               "type": "object",
                     *               "properties": {
                     *                 "bucket": {
                     *                   "type": "string",
                     *                   "title": "Bucket"
                     *                 },
                     *                 "region": {
                     *                   "type": "string",
                     *                   "title": "Region"
                     *                 }
                     *               },
                     *               "required": [
                     *                 "bucket",
                     *                 "region"
                     *               ]
                     *             },
                     *             "credentials_schema": {
                     *               "type": "object",
                     *               "properties": {
                     *                 "access_key_id": {
                     *                   "type": "string",
                     *                   "title": "Access key ID"
                     *                 },
                     *                 "secret_access_key": {
                     *                   "type": "string",
                     *                   "title": "Secret access key",
                     *                   "writeOnly": true,
                     *                   "format": "password"
                     *                 }
                     *               },
                     *               "required": [
                     *                 "access_key_id",
                     *                 "secret_access_key"
                     *               ]
                     *             },
                     *             "bound_keys": [
                     *               "endpoint",
                     *               "ca_certificate"
                     *             ],
                     *             "is_message": false,
                     *             "has_properties": true,
                     *             "brings_late_data": true,
                     *             "sends_notices": false,
                     *             "example_config": {
                     *               "bucket": "invoices",
                     *               "region": "eu-central-1"
                     *             },
                     *             "example_credentials": {
                     *               "access_key_id": "AKIAIOSFODNN7EXAMPLE",
                     *               "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
                     *             }
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ConnectorTypeDescriptionList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDestinations: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only destinations of this connector type. */
                type?: components["schemas"]["ConnectorTypeInput"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *           "type": "destination",
                     *           "attributes": {
                     *             "config": {
                     *               "bucket": "invoices",
                     *               "region": "eu-central-1",
                     *               "prefix": "sap/"
                     *             },
                     *             "warnings": [],
                     *             "credentials_expire_at": null,
                     *             "sign_in": null,
                     *             "last_error": null,
                     *             "last_error_code": null,
                     *             "last_error_at": null,
                     *             "failed_attempts": 0,
                     *             "last_delivered_at": "2026-11-21T09:10:30.684Z",
                     *             "circuit_since": null,
                     *             "next_trial_at": null,
                     *             "slots": 16,
                     *             "slots_in_use": 0,
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T09:10:00.000Z",
                     *             "name": "Invoice archive",
                     *             "connector_type": "objstore",
                     *             "status": "connected",
                     *             "circuit": "closed"
                     *           }
                     *         },
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "type": "destination",
                     *           "attributes": {
                     *             "config": {
                     *               "url": "https://operations.example.com/relay",
                     *               "format": "json"
                     *             },
                     *             "warnings": [],
                     *             "credentials_expire_at": null,
                     *             "sign_in": "bearer_token",
                     *             "last_error": null,
                     *             "last_error_code": null,
                     *             "last_error_at": null,
                     *             "failed_attempts": 0,
                     *             "last_delivered_at": "2026-11-21T09:11:00.000Z",
                     *             "circuit_since": null,
                     *             "next_trial_at": null,
                     *             "slots": 16,
                     *             "slots_in_use": 0,
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z",
                     *             "name": "Operations",
                     *             "connector_type": "webhook",
                     *             "status": "connected",
                     *             "circuit": "closed"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DestinationList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createDestination: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DestinationInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *         "type": "destination",
                     *         "attributes": {
                     *           "name": "Invoice archive",
                     *           "connector_type": "objstore",
                     *           "status": "connected",
                     *           "config": {
                     *             "bucket": "invoices",
                     *             "region": "eu-central-1",
                     *             "prefix": "sap/"
                     *           },
                     *           "warnings": [],
                     *           "credentials_expire_at": null,
                     *           "sign_in": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_error_at": null,
                     *           "failed_attempts": 0,
                     *           "last_delivered_at": "2026-11-21T09:10:30.684Z",
                     *           "circuit": "closed",
                     *           "circuit_since": null,
                     *           "next_trial_at": null,
                     *           "slots": 16,
                     *           "slots_in_use": 0,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T09:10:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DestinationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDestination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *         "type": "destination",
                     *         "attributes": {
                     *           "name": "Invoice archive",
                     *           "connector_type": "objstore",
                     *           "status": "connected",
                     *           "config": {
                     *             "bucket": "invoices",
                     *             "region": "eu-central-1",
                     *             "prefix": "sap/"
                     *           },
                     *           "warnings": [],
                     *           "credentials_expire_at": null,
                     *           "sign_in": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_error_at": null,
                     *           "failed_attempts": 0,
                     *           "last_delivered_at": "2026-11-21T09:10:30.684Z",
                     *           "circuit": "closed",
                     *           "circuit_since": null,
                     *           "next_trial_at": null,
                     *           "slots": 16,
                     *           "slots_in_use": 0,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T09:10:00.000Z",
                     *           "connections": [
                     *             {
                     *               "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *               "name": "Invoices to the archive",
                     *               "source_repo_id": "Z1",
                     *               "source_name": "Incoming invoices",
                     *               "status": "active"
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleDestinationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteDestination: {
        parameters: {
            query?: {
                /** @description With `true`, nothing is deleted: the response lists what the deletion would remove. */
                dry_run?: boolean;
                /** @description With `true`, connections that also link others stay, without what is deleted. Only a connection that would be empty is deleted. */
                keep_connections?: boolean;
            };
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description With `dry_run=true`: what the deletion would remove. Nothing was deleted. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "removed_connections": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *             "name": "Invoices to the archive"
                     *           }
                     *         ],
                     *         "unlinked_connections": [],
                     *         "removed_notifications": [],
                     *         "unwired_repositories": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "name": "Incoming invoices"
                     *           }
                     *         ],
                     *         "affected_destinations": [],
                     *         "failed_documents_delivered": 0
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RemovalResponse"];
                };
            };
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    /** @description The ids of the other destinations that also lose documents, separated by commas; empty if there are none. At most 200: the audit entry names all. */
                    "X-Relay-Affected-Destinations"?: string;
                    /** @description The ids of the connections that were deleted too, separated by commas; empty if there were none. At most 200: the audit entry names all. */
                    "X-Relay-Removed-Connections"?: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateDestination: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "config": {
                 *         "max_concurrent_deliveries": 4
                 *       },
                 *       "credentials": {
                 *         "access_key_id": "AKIAIOSFODNN7EXAMPLE",
                 *         "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
                 *       },
                 *       "name": "Invoice archive"
                 *     }
                 */
                "application/json": components["schemas"]["DestinationChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *         "type": "destination",
                     *         "attributes": {
                     *           "name": "Invoice archive",
                     *           "connector_type": "objstore",
                     *           "status": "connected",
                     *           "config": {
                     *             "bucket": "invoices",
                     *             "region": "eu-central-1",
                     *             "prefix": "sap/"
                     *           },
                     *           "warnings": [],
                     *           "credentials_expire_at": null,
                     *           "sign_in": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_error_at": null,
                     *           "failed_attempts": 0,
                     *           "last_delivered_at": "2026-11-21T09:10:30.684Z",
                     *           "circuit": "closed",
                     *           "circuit_since": null,
                     *           "next_trial_at": null,
                     *           "slots": 16,
                     *           "slots_in_use": 0,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T09:10:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DestinationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    attemptDestination: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *         "type": "destination",
                     *         "attributes": {
                     *           "waiting_deliveries": 1
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["AttemptedDestinationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    revokeDestinationDownloadLinks: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testDestination: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "success",
                     *         "message": "The relay wrote an object to the bucket invoices and removed it."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestResultResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testDestinationChange: {
        parameters: {
            query?: never;
            header?: {
                /** @description Accepted like that of every `POST`, and without effect: the request changes nothing, so a repetition is executed. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "config": {
                 *         "max_concurrent_deliveries": 4
                 *       },
                 *       "credentials": {
                 *         "access_key_id": "AKIAIOSFODNN7EXAMPLE",
                 *         "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DestinationTestChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "success",
                     *         "message": "The relay wrote an object to the bucket invoices and removed it."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestResultResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testDestinationConfig: {
        parameters: {
            query?: never;
            header?: {
                /** @description Accepted like that of every `POST`, and without effect: the request changes nothing, so a repetition is executed. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DestinationTest"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "success",
                     *         "message": "The relay wrote an object to the bucket invoices and removed it."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestResultResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDiscardedGroups: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "Z1",
                     *           "type": "discarded_group",
                     *           "attributes": {
                     *             "repo_id": "Z1",
                     *             "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "is_connected": false,
                     *             "documents": 1,
                     *             "newest_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DiscardedGroupList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDocumentMigrations: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only migrations into this repository. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CH`. */
                repository_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1D5",
                     *           "type": "document_migration",
                     *           "attributes": {
                     *             "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "mode": "copy",
                     *             "status": "running",
                     *             "documents_per_minute": 600,
                     *             "lists": [
                     *               {
                     *                 "name": "TOA01.csv",
                     *                 "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                     *                 "rows": 1000,
                     *                 "other_rows": 0
                     *               }
                     *             ],
                     *             "rows": 1000,
                     *             "found": 0,
                     *             "copied": 512,
                     *             "equal": 12,
                     *             "missing": 1,
                     *             "different": 0,
                     *             "damaged": 0,
                     *             "failed": 0,
                     *             "copied_bytes": 104857600,
                     *             "waiting_reason": null,
                     *             "created_at": "2026-11-21T09:10:30.000Z",
                     *             "ended_at": null
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentMigrationList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDocumentMigration: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1D5
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1D5",
                     *         "type": "document_migration",
                     *         "attributes": {
                     *           "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *           "repo_id": "Z1",
                     *           "mode": "copy",
                     *           "status": "running",
                     *           "documents_per_minute": 600,
                     *           "lists": [
                     *             {
                     *               "name": "TOA01.csv",
                     *               "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                     *               "rows": 1000,
                     *               "other_rows": 0
                     *             }
                     *           ],
                     *           "rows": 1000,
                     *           "found": 0,
                     *           "copied": 512,
                     *           "equal": 12,
                     *           "missing": 1,
                     *           "different": 0,
                     *           "damaged": 0,
                     *           "failed": 0,
                     *           "copied_bytes": 104857600,
                     *           "waiting_reason": null,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentMigrationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelDocumentMigration: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1D5
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1D5",
                     *         "type": "document_migration",
                     *         "attributes": {
                     *           "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *           "repo_id": "Z1",
                     *           "mode": "copy",
                     *           "status": "running",
                     *           "documents_per_minute": 600,
                     *           "lists": [
                     *             {
                     *               "name": "TOA01.csv",
                     *               "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                     *               "rows": 1000,
                     *               "other_rows": 0
                     *             }
                     *           ],
                     *           "rows": 1000,
                     *           "found": 0,
                     *           "copied": 512,
                     *           "equal": 12,
                     *           "missing": 1,
                     *           "different": 0,
                     *           "damaged": 0,
                     *           "failed": 0,
                     *           "copied_bytes": 104857600,
                     *           "waiting_reason": null,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentMigrationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The migration has already ended. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    pauseDocumentMigration: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1D5
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1D5",
                     *         "type": "document_migration",
                     *         "attributes": {
                     *           "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *           "repo_id": "Z1",
                     *           "mode": "copy",
                     *           "status": "running",
                     *           "documents_per_minute": 600,
                     *           "lists": [
                     *             {
                     *               "name": "TOA01.csv",
                     *               "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                     *               "rows": 1000,
                     *               "other_rows": 0
                     *             }
                     *           ],
                     *           "rows": 1000,
                     *           "found": 0,
                     *           "copied": 512,
                     *           "equal": 12,
                     *           "missing": 1,
                     *           "different": 0,
                     *           "damaged": 0,
                     *           "failed": 0,
                     *           "copied_bytes": 104857600,
                     *           "waiting_reason": null,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentMigrationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The migration does not run. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    resumeDocumentMigration: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1D5
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1D5",
                     *         "type": "document_migration",
                     *         "attributes": {
                     *           "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *           "repo_id": "Z1",
                     *           "mode": "copy",
                     *           "status": "running",
                     *           "documents_per_minute": 600,
                     *           "lists": [
                     *             {
                     *               "name": "TOA01.csv",
                     *               "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
                     *               "rows": 1000,
                     *               "other_rows": 0
                     *             }
                     *           ],
                     *           "rows": 1000,
                     *           "found": 0,
                     *           "copied": 512,
                     *           "equal": 12,
                     *           "missing": 1,
                     *           "different": 0,
                     *           "damaged": 0,
                     *           "failed": 0,
                     *           "copied_bytes": 104857600,
                     *           "waiting_reason": null,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentMigrationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The migration is not paused. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDocuments: {
        parameters: {
            query?: {
                /** @description Only documents that an operator has acknowledged (`true`) or has not (`false`). */
                acknowledged?: boolean;
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description `metadata`: each document with its business object, as in the single document. */
                include?: "metadata";
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only documents of this repository (`repo_id`). Example: `Z1`. */
                repo_id?: string;
                /** @description Only documents with this status. */
                status?: components["schemas"]["DocumentStatusInput"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *           "type": "document",
                     *           "attributes": {
                     *             "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *             "repo_id": "Z1",
                     *             "comp_id": "data",
                     *             "content_type": "application/pdf",
                     *             "size_bytes": 48213,
                     *             "status": "delivered",
                     *             "origin": "source",
                     *             "content_retained": true,
                     *             "acknowledged_at": null,
                     *             "received_at": "2026-11-21T09:00:00.000Z",
                     *             "superseded_at": null,
                     *             "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *             "deliveries": [
                     *               {
                     *                 "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *                 "destination_name": "Invoice archive",
                     *                 "status": "delivered",
                     *                 "delivered_at": "2026-11-21T09:10:30.684Z",
                     *                 "attempts": 2,
                     *                 "status_since": "2026-11-21T09:10:30.684Z",
                     *                 "next_attempt_at": null,
                     *                 "waiting_for": null,
                     *                 "last_error": null,
                     *                 "ended_by": null
                     *               }
                     *             ],
                     *             "metadata": {
                     *               "erp_object_type": "BUS2081",
                     *               "erp_object_id": "51056001232026",
                     *               "ar_object": "ZFIINVOICE"
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDocument: {
        parameters: {
            query?: {
                /** @description How long to wait for a final status: at most 30 seconds. 0 does not wait. */
                wait_seconds?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "comp_id": "data",
                     *           "content_type": "application/pdf",
                     *           "size_bytes": 48213,
                     *           "status": "delivered",
                     *           "origin": "source",
                     *           "content_retained": true,
                     *           "acknowledged_at": null,
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "superseded_at": null,
                     *           "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "delivered",
                     *               "delivered_at": "2026-11-21T09:10:30.684Z",
                     *               "attempts": 2,
                     *               "status_since": "2026-11-21T09:10:30.684Z",
                     *               "next_attempt_at": null,
                     *               "waiting_for": null,
                     *               "last_error": null,
                     *               "ended_by": null,
                     *               "path": "s3://invoices/sap/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data",
                     *               "late_data": null
                     *             }
                     *           ],
                     *           "metadata": {
                     *             "erp_object_type": "BUS2081",
                     *             "erp_object_id": "51056001232026",
                     *             "ar_object": "ZFIINVOICE"
                     *           },
                     *           "fields": {
                     *             "vendor": "Acme Ltd"
                     *           },
                     *           "enrichment": {
                     *             "status": "complete",
                     *             "enrichment_id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *             "steps": [
                     *               {
                     *                 "name": "link",
                     *                 "status": "done",
                     *                 "error": null,
                     *                 "at": "2026-11-21T09:00:00.000Z"
                     *               }
                     *             ],
                     *             "attempts": 1,
                     *             "waits_until": "2026-11-21T09:00:00.000Z",
                     *             "ends_at": "2026-11-21T09:00:00.000Z",
                     *             "updated_at": "2026-11-21T09:00:00.000Z"
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    acknowledgeDocument: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "comp_id": "data",
                     *           "content_type": "application/pdf",
                     *           "size_bytes": 48213,
                     *           "status": "delivered",
                     *           "origin": "source",
                     *           "content_retained": true,
                     *           "acknowledged_at": null,
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "superseded_at": null,
                     *           "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "delivered",
                     *               "delivered_at": "2026-11-21T09:10:30.684Z",
                     *               "attempts": 2,
                     *               "status_since": "2026-11-21T09:10:30.684Z",
                     *               "next_attempt_at": null,
                     *               "waiting_for": null,
                     *               "last_error": null,
                     *               "ended_by": null
                     *             }
                     *           ],
                     *           "metadata": {
                     *             "erp_object_type": "BUS2081",
                     *             "erp_object_id": "51056001232026",
                     *             "ar_object": "ZFIINVOICE"
                     *           }
                     *         }
                     *       },
                     *       "meta": {
                     *         "open_deliveries": [
                     *           {
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "destination_name": "Invoice archive",
                     *             "status": "pending"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["AcknowledgedDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The document has not failed, and was not discarded. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    attemptDocument: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "status": "retrying",
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "retrying",
                     *               "delivered_at": null,
                     *               "attempts": 1,
                     *               "status_since": "2026-11-21T09:10:30.000Z",
                     *               "next_attempt_at": "2026-11-21T09:10:30.000Z",
                     *               "waiting_for": null,
                     *               "last_error": {
                     *                 "code": "credentials_refused",
                     *                 "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *               },
                     *               "ended_by": null
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description No delivery of the document waits for an attempt (`nothing_to_retry`). The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDocumentAttempts: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1C1",
                     *           "type": "delivery_attempt",
                     *           "attributes": {
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "destination_name": "Invoice archive",
                     *             "duration_ms": 184,
                     *             "number": 1,
                     *             "started_at": "2026-11-21T09:00:02.816Z",
                     *             "outcome": "permanent",
                     *             "error": {
                     *               "code": "credentials_refused",
                     *               "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *             },
                     *             "answer": {
                     *               "status": 403,
                     *               "body": "<Error><Code>InvalidAccessKeyId</Code></Error>"
                     *             },
                     *             "bytes_sent": 0
                     *           }
                     *         },
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1C2",
                     *           "type": "delivery_attempt",
                     *           "attributes": {
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "destination_name": "Invoice archive",
                     *             "duration_ms": 184,
                     *             "number": 2,
                     *             "started_at": "2026-11-21T09:10:30.500Z",
                     *             "outcome": "delivered",
                     *             "error": null,
                     *             "answer": {
                     *               "status": 200,
                     *               "body": ""
                     *             },
                     *             "bytes_sent": 48213
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryAttemptList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDocumentContent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                    "application/octet-stream": string;
                };
            };
            /** @description The request succeeded. The response is the range of bytes that the header `Range` asks for. */
            206: {
                headers: {
                    "content-disposition": string;
                    "content-range": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                    "application/octet-stream": string;
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            416: components["responses"]["RangeNotSatisfiable"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteDocumentContent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    attemptDocumentDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description Id of the destination
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                destinationId: string;
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "status": "retrying",
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "retrying",
                     *               "delivered_at": null,
                     *               "attempts": 1,
                     *               "status_since": "2026-11-21T09:10:30.000Z",
                     *               "next_attempt_at": "2026-11-21T09:10:30.000Z",
                     *               "waiting_for": null,
                     *               "last_error": {
                     *                 "code": "credentials_refused",
                     *                 "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *               },
                     *               "ended_by": null
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The delivery does not wait for an attempt (`nothing_to_retry`). The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryDocumentDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description Id of the destination
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CG
                 */
                destinationId: string;
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "status": "retrying",
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "retrying",
                     *               "delivered_at": null,
                     *               "attempts": 1,
                     *               "status_since": "2026-11-21T09:10:30.000Z",
                     *               "next_attempt_at": "2026-11-21T09:10:30.000Z",
                     *               "waiting_for": null,
                     *               "last_error": {
                     *                 "code": "credentials_refused",
                     *                 "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *               },
                     *               "ended_by": null
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The delivery is in progress, has succeeded, is held by an inactive connection or cannot be made (`nothing_to_retry`). The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    enrichDocument: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "comp_id": "data",
                     *           "content_type": "application/pdf",
                     *           "size_bytes": 48213,
                     *           "status": "delivered",
                     *           "origin": "source",
                     *           "content_retained": true,
                     *           "acknowledged_at": null,
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "superseded_at": null,
                     *           "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "delivered",
                     *               "delivered_at": "2026-11-21T09:10:30.684Z",
                     *               "attempts": 2,
                     *               "status_since": "2026-11-21T09:10:30.684Z",
                     *               "next_attempt_at": null,
                     *               "waiting_for": null,
                     *               "last_error": null,
                     *               "ended_by": null,
                     *               "path": "s3://invoices/sap/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data",
                     *               "late_data": null
                     *             }
                     *           ],
                     *           "metadata": {
                     *             "erp_object_type": "BUS2081",
                     *             "erp_object_id": "51056001232026",
                     *             "ar_object": "ZFIINVOICE"
                     *           },
                     *           "fields": {
                     *             "vendor": "Acme Ltd"
                     *           },
                     *           "enrichment": {
                     *             "status": "complete",
                     *             "enrichment_id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *             "steps": [
                     *               {
                     *                 "name": "link",
                     *                 "status": "done",
                     *                 "error": null,
                     *                 "at": "2026-11-21T09:00:00.000Z"
                     *               }
                     *             ],
                     *             "attempts": 1,
                     *             "waits_until": "2026-11-21T09:00:00.000Z",
                     *             "ends_at": "2026-11-21T09:00:00.000Z",
                     *             "updated_at": "2026-11-21T09:00:00.000Z"
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository of the document has no active enrichment, or the content of the document is no longer kept. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryDocument: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CF
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "type": "document",
                     *         "attributes": {
                     *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *           "repo_id": "Z1",
                     *           "status": "retrying",
                     *           "received_at": "2026-11-21T09:00:00.000Z",
                     *           "deliveries": [
                     *             {
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "destination_name": "Invoice archive",
                     *               "status": "retrying",
                     *               "delivered_at": null,
                     *               "attempts": 1,
                     *               "status_since": "2026-11-21T09:10:30.000Z",
                     *               "next_attempt_at": "2026-11-21T09:10:30.000Z",
                     *               "waiting_for": null,
                     *               "last_error": {
                     *                 "code": "credentials_refused",
                     *                 "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *               },
                     *               "ended_by": null
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The document has no failed or cancelled delivery to an existing destination (`nothing_to_retry`). The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    startBulkAcknowledgement: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "repo_id": "Z1"
                 *     }
                 */
                "application/json": components["schemas"]["DiscardedDocumentsInput"];
            };
        };
        responses: {
            /** @description Dry run: how many documents would be acknowledged now. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    setDocumentMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The document identifier in the source system (`docId`).
                 * @example 005056B5A3F21EEFA9C1D04F7B6E8C11
                 */
                doc_id: string;
                /**
                 * @description The repository identifier in the source system (`contRep`).
                 * @example Z1
                 */
                repo_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "erp_object_type": "BUS2081",
                 *       "erp_object_id": "51056001232026",
                 *       "ar_object": "ZFIINVOICE"
                 *     }
                 */
                "application/json": components["schemas"]["DocumentMetadataChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "repo_id": "Z1",
                     *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *         "documents": 1,
                     *         "metadata": {
                     *           "erp_object_type": "BUS2081",
                     *           "erp_object_id": "51056001232026",
                     *           "ar_object": "ZFIINVOICE"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UpdatedMetadataResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    startBulkDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *     }
                 */
                "application/json": components["schemas"]["BulkDeliveryInput"];
            };
        };
        responses: {
            /** @description Dry run: how many documents match now, before the filters of connections. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    startBulkReplay: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "repo_id": "Z1"
                 *     }
                 */
                "application/json": components["schemas"]["DiscardedDocumentsInput"];
            };
        };
        responses: {
            /** @description Dry run: how many documents have such requests now. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description No connection leads from the repository to a destination: the replays would be discarded again. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    startBulkRetry: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "dry_run": false,
                 *       "repo_id": "Z1",
                 *       "status": "failed",
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *       "error_code": "credentials_refused",
                 *       "date_from": "2026-11-01T00:00:00.000Z",
                 *       "date_to": "2026-11-30T23:59:59.999Z"
                 *     }
                 */
                "application/json": components["schemas"]["BulkRetryInput"];
            };
        };
        responses: {
            /** @description Dry run: how many documents and deliveries would be retried now. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CX",
                     *         "type": "bulk_retry",
                     *         "attributes": {
                     *           "action": "retry",
                     *           "status": "running",
                     *           "filter": {
                     *             "repo_id": "Z1",
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "error_code": "credentials_refused"
                     *           },
                     *           "matched_documents": 1,
                     *           "matched_deliveries": 1,
                     *           "retried_documents": 0,
                     *           "retried_deliveries": 0,
                     *           "skipped_documents": 0,
                     *           "created_at": "2026-11-21T09:10:30.000Z",
                     *           "ended_at": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StartedBulkRetryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    searchDocuments: {
        parameters: {
            query?: {
                /** @description Only documents that an operator has acknowledged (`true`) or has not (`false`). */
                acknowledged?: boolean;
                /** @description Only rows after this id, oldest first. Pass the id of the last row that was read, or 00000000000000000000000000 to begin with the oldest. A row is found a minute after the time of its id. Not with `before`. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                after?: string;
                /** @description Only documents of this document type of the source system. Example: `ZFIINVOICE`. */
                ar_object?: string;
                /** @description Only rows before this id. Pass `next_cursor` of the previous page. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                before?: string;
                /** @description Only documents with a delivery that this connection has planned. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CB`. */
                connection_id?: string;
                /** @description Only documents with a delivery through this connector. */
                connector_type?: components["schemas"]["ConnectorTypeInput"];
                /** @description Only documents with this content type, as the source system sent it. Example: `application/pdf`. */
                content_type?: string;
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only documents with a delivery of this status; to the destination, of the connection or through the connector, if one is given. */
                delivery_status?: components["schemas"]["DeliveryStatusInput"];
                /** @description Only documents with a delivery to this destination. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                destination_id?: string;
                /** @description Only documents with this `doc_id`. Example: `005056B5A3F21EEFA9C1D04F7B6E8C11`. */
                doc_id?: string;
                /** @description Only documents whose `doc_id` begins with this text. Example: `005056B5`. */
                doc_id_prefix?: string;
                /** @description Only documents of the business object with this key. Example: `51056001232026`. */
                erp_object_id?: string;
                /** @description Only documents of business objects of this type, for example `BKPF`. Example: `BUS2081`. */
                erp_object_type?: string;
                /** @description Only documents with a delivery, of the other conditions on deliveries, whose last error has this code; `none` if the error is not one of an attempt. Example: `credentials_refused`. */
                error_code?: string;
                /** @description Only documents with this value of a field of their enrichment, in upper or lower case: `vendor_name:Acme Ltd`. Example: `vendor:Acme Ltd`. */
                field?: string;
                /** @description `metadata`: each document with its business object, as in the single document. */
                include?: "metadata";
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only documents whose `doc_id`, business key or value of a field begins with this text, in upper or lower case. A business key is also found without its company code (the first four characters), by one of its parts, without leading zeros, and a number by its last digits, at least three. Example: `5105600123`. */
                q?: string;
                /** @description Only documents of this repository (`repo_id`). Example: `Z1`. */
                repo_id?: string;
                /** @description Only documents of at most this number of bytes. */
                size_max?: number;
                /** @description Only documents of at least this number of bytes. */
                size_min?: number;
                /** @description Only documents with this status. */
                status?: components["schemas"]["DocumentStatusInput"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *           "type": "document",
                     *           "attributes": {
                     *             "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *             "repo_id": "Z1",
                     *             "comp_id": "data",
                     *             "content_type": "application/pdf",
                     *             "size_bytes": 48213,
                     *             "status": "delivered",
                     *             "origin": "source",
                     *             "content_retained": true,
                     *             "acknowledged_at": null,
                     *             "received_at": "2026-11-21T09:00:00.000Z",
                     *             "superseded_at": null,
                     *             "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *             "deliveries": [
                     *               {
                     *                 "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *                 "destination_name": "Invoice archive",
                     *                 "status": "delivered",
                     *                 "delivered_at": "2026-11-21T09:10:30.684Z",
                     *                 "attempts": 2,
                     *                 "status_since": "2026-11-21T09:10:30.684Z",
                     *                 "next_attempt_at": null,
                     *                 "waiting_for": null,
                     *                 "last_error": null,
                     *                 "ended_by": null
                     *               }
                     *             ],
                     *             "metadata": {
                     *               "erp_object_type": "BUS2081",
                     *               "erp_object_id": "51056001232026",
                     *               "ar_object": "ZFIINVOICE"
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "per_page": 25,
                     *         "next_cursor": null
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DocumentSearchResult"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEnrichments: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *           "type": "enrichment",
                     *           "attributes": {
                     *             "name": "MM invoices",
                     *             "repository_ids": [
                     *               "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                     *             ],
                     *             "is_active": true,
                     *             "wait_seconds": 0,
                     *             "late_days": 0,
                     *             "http": {
                     *               "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
                     *               "headers": {}
                     *             },
                     *             "steps": [
                     *               {
                     *                 "kind": "link",
                     *                 "name": "link"
                     *               },
                     *               {
                     *                 "kind": "rfc",
                     *                 "name": "invoice",
                     *                 "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                     *                 "imports": {
                     *                   "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                     *                   "FISCALYEAR": "{erp_object_id[10:14]}"
                     *                 },
                     *                 "tables": {},
                     *                 "fields": [
                     *                   {
                     *                     "name": "vendor",
                     *                     "path": "$.exports.HEADERDATA.DIFF_INV",
                     *                     "type": "string",
                     *                     "optional": false
                     *                   }
                     *                 ]
                     *               }
                     *             ],
                     *             "has_credentials": true,
                     *             "is_failing": false,
                     *             "documents": {
                     *               "pending": 0,
                     *               "complete": 1,
                     *               "partial": 0,
                     *               "failed": 0
                     *             },
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EnrichmentList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createEnrichment: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "MM invoices",
                 *       "repository_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                 *       ],
                 *       "steps": [
                 *         {
                 *           "kind": "link",
                 *           "name": "link"
                 *         },
                 *         {
                 *           "kind": "rfc",
                 *           "name": "invoice",
                 *           "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                 *           "imports": {
                 *             "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                 *             "FISCALYEAR": "{erp_object_id[10:14]}"
                 *           },
                 *           "tables": {},
                 *           "fields": [
                 *             {
                 *               "name": "vendor",
                 *               "path": "$.exports.HEADERDATA.DIFF_INV",
                 *               "type": "string",
                 *               "optional": false
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["EnrichmentInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *         "type": "enrichment",
                     *         "attributes": {
                     *           "name": "MM invoices",
                     *           "repository_ids": [
                     *             "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                     *           ],
                     *           "is_active": true,
                     *           "wait_seconds": 0,
                     *           "late_days": 0,
                     *           "http": {
                     *             "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
                     *             "headers": {}
                     *           },
                     *           "steps": [
                     *             {
                     *               "kind": "link",
                     *               "name": "link"
                     *             },
                     *             {
                     *               "kind": "rfc",
                     *               "name": "invoice",
                     *               "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                     *               "imports": {
                     *                 "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                     *                 "FISCALYEAR": "{erp_object_id[10:14]}"
                     *               },
                     *               "tables": {},
                     *               "fields": [
                     *                 {
                     *                   "name": "vendor",
                     *                   "path": "$.exports.HEADERDATA.DIFF_INV",
                     *                   "type": "string",
                     *                   "optional": false
                     *                 }
                     *               ]
                     *             }
                     *           ],
                     *           "has_credentials": true,
                     *           "is_failing": false,
                     *           "documents": {
                     *             "pending": 0,
                     *             "complete": 1,
                     *             "partial": 0,
                     *             "failed": 0
                     *           },
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EnrichmentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getEnrichment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CS
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *         "type": "enrichment",
                     *         "attributes": {
                     *           "name": "MM invoices",
                     *           "repository_ids": [
                     *             "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                     *           ],
                     *           "is_active": true,
                     *           "wait_seconds": 0,
                     *           "late_days": 0,
                     *           "http": {
                     *             "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
                     *             "headers": {}
                     *           },
                     *           "steps": [
                     *             {
                     *               "kind": "link",
                     *               "name": "link"
                     *             },
                     *             {
                     *               "kind": "rfc",
                     *               "name": "invoice",
                     *               "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                     *               "imports": {
                     *                 "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                     *                 "FISCALYEAR": "{erp_object_id[10:14]}"
                     *               },
                     *               "tables": {},
                     *               "fields": [
                     *                 {
                     *                   "name": "vendor",
                     *                   "path": "$.exports.HEADERDATA.DIFF_INV",
                     *                   "type": "string",
                     *                   "optional": false
                     *                 }
                     *               ]
                     *             }
                     *           ],
                     *           "has_credentials": true,
                     *           "is_failing": false,
                     *           "documents": {
                     *             "pending": 0,
                     *             "complete": 1,
                     *             "partial": 0,
                     *             "failed": 0
                     *           },
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EnrichmentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteEnrichment: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CS
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateEnrichment: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CS
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "MM invoices",
                 *       "repository_ids": [
                 *         "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                 *       ],
                 *       "is_active": true,
                 *       "wait_seconds": 0,
                 *       "late_days": 0,
                 *       "http": {
                 *         "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
                 *         "headers": {}
                 *       },
                 *       "steps": [
                 *         {
                 *           "kind": "link",
                 *           "name": "link"
                 *         },
                 *         {
                 *           "kind": "rfc",
                 *           "name": "invoice",
                 *           "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                 *           "imports": {
                 *             "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                 *             "FISCALYEAR": "{erp_object_id[10:14]}"
                 *           },
                 *           "tables": {},
                 *           "fields": [
                 *             {
                 *               "name": "vendor",
                 *               "path": "$.exports.HEADERDATA.DIFF_INV",
                 *               "type": "string",
                 *               "optional": false
                 *             }
                 *           ]
                 *         }
                 *       ],
                 *       "credentials": {}
                 *     }
                 */
                "application/json": components["schemas"]["EnrichmentChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                     *         "type": "enrichment",
                     *         "attributes": {
                     *           "name": "MM invoices",
                     *           "repository_ids": [
                     *             "01K9R4B6ZD8M2V7X0QF3N5T1CH"
                     *           ],
                     *           "is_active": true,
                     *           "wait_seconds": 0,
                     *           "late_days": 0,
                     *           "http": {
                     *             "url": "https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV",
                     *             "headers": {}
                     *           },
                     *           "steps": [
                     *             {
                     *               "kind": "link",
                     *               "name": "link"
                     *             },
                     *             {
                     *               "kind": "rfc",
                     *               "name": "invoice",
                     *               "function": "BAPI_INCOMINGINVOICE_GETDETAIL",
                     *               "imports": {
                     *                 "INVOICEDOCNUMBER": "{erp_object_id[0:10]}",
                     *                 "FISCALYEAR": "{erp_object_id[10:14]}"
                     *               },
                     *               "tables": {},
                     *               "fields": [
                     *                 {
                     *                   "name": "vendor",
                     *                   "path": "$.exports.HEADERDATA.DIFF_INV",
                     *                   "type": "string",
                     *                   "optional": false
                     *                 }
                     *               ]
                     *             }
                     *           ],
                     *           "has_credentials": true,
                     *           "is_failing": false,
                     *           "documents": {
                     *             "pending": 0,
                     *             "complete": 1,
                     *             "partial": 0,
                     *             "failed": 0
                     *           },
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EnrichmentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    tryEnrichment: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CS
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF"
                 *     }
                 */
                "application/json": components["schemas"]["EnrichmentTrialInput"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "steps": [
                     *           {
                     *             "name": "link",
                     *             "status": "done",
                     *             "error": null,
                     *             "at": "2026-11-21T09:00:00.000Z",
                     *             "request": {
                     *               "kind": "rfc",
                     *               "function": "ARCHIV_GET_CONNECTIONS",
                     *               "imports": {
                     *                 "ARCHIV_ID": "Z1",
                     *                 "ARC_DOC_ID": "005056B5A3F21EEFA9C1D04F7B6E8C11"
                     *               },
                     *               "tables": {
                     *                 "CONNECTIONS": []
                     *               }
                     *             },
                     *             "answer": "{\"exports\":{\"COUNT\":\"1\"},\"tables\":{\"CONNECTIONS\":[{\"SAP_OBJECT\":\"BUS2081\",\"OBJECT_ID\":\"51056001232026\"}]}}",
                     *             "answer_truncated": false,
                     *             "fields": [
                     *               {
                     *                 "name": "erp_object_id",
                     *                 "value": "51056001232026",
                     *                 "problem": null
                     *               }
                     *             ]
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EnrichmentTrialResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEventSubscriptions: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                     *           "type": "event_subscription",
                     *           "attributes": {
                     *             "name": "Data warehouse",
                     *             "events": [
                     *               "document.delivered",
                     *               "document.failed"
                     *             ],
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *             "is_active": true,
                     *             "cursor": "660b0a182de650000000a91c4000000002f18",
                     *             "waiting_since": null,
                     *             "attempts": 0,
                     *             "failing_since": null,
                     *             "next_attempt_at": null,
                     *             "last_error": null,
                     *             "last_error_code": null,
                     *             "last_sent_at": "2026-11-21T09:10:30.684Z",
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventSubscriptionList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createEventSubscription: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Data warehouse",
                 *       "events": [
                 *         "document.delivered",
                 *         "document.failed"
                 *       ],
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY"
                 *     }
                 */
                "application/json": components["schemas"]["EventSubscriptionInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                     *         "type": "event_subscription",
                     *         "attributes": {
                     *           "name": "Data warehouse",
                     *           "events": [
                     *             "document.delivered",
                     *             "document.failed"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "is_active": true,
                     *           "cursor": "660b0a182de650000000a91c4000000002f18",
                     *           "waiting_since": null,
                     *           "attempts": 0,
                     *           "failing_since": null,
                     *           "next_attempt_at": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_sent_at": "2026-11-21T09:10:30.684Z",
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventSubscriptionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            /** @description Events after this cursor were removed, or this database does not have the event of the cursor. */
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getEventSubscription: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CV
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                     *         "type": "event_subscription",
                     *         "attributes": {
                     *           "name": "Data warehouse",
                     *           "events": [
                     *             "document.delivered",
                     *             "document.failed"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "is_active": true,
                     *           "cursor": "660b0a182de650000000a91c4000000002f18",
                     *           "waiting_since": null,
                     *           "attempts": 0,
                     *           "failing_since": null,
                     *           "next_attempt_at": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_sent_at": "2026-11-21T09:10:30.684Z",
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventSubscriptionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteEventSubscription: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CV
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateEventSubscription: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CV
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Data warehouse",
                 *       "events": [
                 *         "document.delivered",
                 *         "document.failed"
                 *       ],
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                 *       "is_active": true
                 *     }
                 */
                "application/json": components["schemas"]["EventSubscriptionChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                     *         "type": "event_subscription",
                     *         "attributes": {
                     *           "name": "Data warehouse",
                     *           "events": [
                     *             "document.delivered",
                     *             "document.failed"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "is_active": true,
                     *           "cursor": "660b0a182de650000000a91c4000000002f18",
                     *           "waiting_since": null,
                     *           "attempts": 0,
                     *           "failing_since": null,
                     *           "next_attempt_at": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_sent_at": "2026-11-21T09:10:30.684Z",
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventSubscriptionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayEventSubscription: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CV
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "after": "660b0a182de650000000a91c4000000002f17"
                 *     }
                 */
                "application/json": components["schemas"]["EventReplayInput"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                     *         "type": "event_subscription",
                     *         "attributes": {
                     *           "name": "Data warehouse",
                     *           "events": [
                     *             "document.delivered",
                     *             "document.failed"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "is_active": true,
                     *           "cursor": "660b0a182de650000000a91c4000000002f18",
                     *           "waiting_since": null,
                     *           "attempts": 0,
                     *           "failing_since": null,
                     *           "next_attempt_at": null,
                     *           "last_error": null,
                     *           "last_error_code": null,
                     *           "last_sent_at": "2026-11-21T09:10:30.684Z",
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventSubscriptionResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            /** @description Events after this cursor were removed, or this database does not have the event of the cursor. */
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Only events after this one: `next_cursor` of the answer before, or `latest` to begin now. By default from the oldest that is kept. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                after?: string;
                /** @description The number of events, at most. */
                limit?: number;
                /** @description Only events of these types, separated by commas. Example: `document.delivered,document.failed`. */
                types?: string;
                /** @description Answers as soon as there is an event, and after this time without one. At most 30. */
                wait_seconds?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "660b0a182de650000000a91b8000000002f14",
                     *           "type": "event",
                     *           "attributes": {
                     *             "event": "document.received",
                     *             "created_at": "2026-11-21T09:00:00.000Z",
                     *             "data": {
                     *               "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *               "repo_id": "Z1",
                     *               "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *               "comp_id": "data",
                     *               "revision": 1,
                     *               "content_type": "application/pdf",
                     *               "size_bytes": 48213,
                     *               "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *               "erp_object_type": null,
                     *               "erp_object_id": null,
                     *               "ar_object": null
                     *             }
                     *           }
                     *         },
                     *         {
                     *           "id": "660b0a182de650000000a91bb000000002f15",
                     *           "type": "event",
                     *           "attributes": {
                     *             "event": "delivery.failed",
                     *             "created_at": "2026-11-21T09:00:03.000Z",
                     *             "data": {
                     *               "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *               "repo_id": "Z1",
                     *               "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *               "comp_id": "data",
                     *               "revision": 1,
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "attempts": 1,
                     *               "ended_by": "permanent_error",
                     *               "error_code": "credentials_refused"
                     *             }
                     *           }
                     *         },
                     *         {
                     *           "id": "660b0a182de650000000a91bb000000002f16",
                     *           "type": "event",
                     *           "attributes": {
                     *             "event": "document.failed",
                     *             "created_at": "2026-11-21T09:00:03.000Z",
                     *             "data": {
                     *               "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *               "repo_id": "Z1",
                     *               "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *               "comp_id": "data",
                     *               "revision": 1
                     *             }
                     *           }
                     *         },
                     *         {
                     *           "id": "660b0a182de650000000a91c4000000002f17",
                     *           "type": "event",
                     *           "attributes": {
                     *             "event": "delivery.delivered",
                     *             "created_at": "2026-11-21T09:10:30.684Z",
                     *             "data": {
                     *               "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *               "repo_id": "Z1",
                     *               "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *               "comp_id": "data",
                     *               "revision": 1,
                     *               "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *               "attempts": 2,
                     *               "location": "s3://invoices/sap/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data"
                     *             }
                     *           }
                     *         },
                     *         {
                     *           "id": "660b0a182de650000000a91c4000000002f18",
                     *           "type": "event",
                     *           "attributes": {
                     *             "event": "document.delivered",
                     *             "created_at": "2026-11-21T09:10:30.684Z",
                     *             "data": {
                     *               "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *               "repo_id": "Z1",
                     *               "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *               "comp_id": "data",
                     *               "revision": 1
                     *             }
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "next_cursor": "660b0a182de650000000a91c4000000002f18",
                     *         "has_more": false
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EventList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            /** @description Events after this cursor were removed, or this database does not have the event of the cursor. */
            410: components["responses"]["Gone"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listFailures: {
        parameters: {
            query?: {
                /** @description Only deliveries to this destination. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                destination_id?: string;
                /** @description Only deliveries that have had their status for at least this number of seconds. */
                min_age_seconds?: number;
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only deliveries with this status. Cancelled deliveries are those of failed documents: their destinations were deleted. */
                status?: components["schemas"]["FailureStatusInput"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG-failed-credentials_refused",
                     *           "type": "failure_group",
                     *           "attributes": {
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *             "destination_name": "Invoice archive",
                     *             "destination_deleted": false,
                     *             "connector_type": "objstore",
                     *             "status": "failed",
                     *             "error_code": "credentials_refused",
                     *             "last_message": "The bucket invoices answered 403 InvalidAccessKeyId",
                     *             "documents": 1,
                     *             "oldest_at": "2026-11-21T09:00:03.000Z",
                     *             "newest_at": "2026-11-21T09:00:03.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["FailureGroupList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CQ",
                     *           "type": "notification",
                     *           "attributes": {
                     *             "name": "On call",
                     *             "events": [
                     *               "destination.failing"
                     *             ],
                     *             "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *             "quiet_seconds": 900,
                     *             "silence_hours": 72,
                     *             "is_active": true,
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createNotification: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "On call",
                 *       "events": [
                 *         "destination.failing"
                 *       ],
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY"
                 *     }
                 */
                "application/json": components["schemas"]["NotificationInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CQ",
                     *         "type": "notification",
                     *         "attributes": {
                     *           "name": "On call",
                     *           "events": [
                     *             "destination.failing"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "quiet_seconds": 900,
                     *           "silence_hours": 72,
                     *           "is_active": true,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CQ
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CQ",
                     *         "type": "notification",
                     *         "attributes": {
                     *           "name": "On call",
                     *           "events": [
                     *             "destination.failing"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "quiet_seconds": 900,
                     *           "silence_hours": 72,
                     *           "is_active": true,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteNotification: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CQ
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateNotification: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CQ
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "On call",
                 *       "events": [
                 *         "destination.failing"
                 *       ],
                 *       "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                 *       "quiet_seconds": 900,
                 *       "silence_hours": 72,
                 *       "is_active": true
                 *     }
                 */
                "application/json": components["schemas"]["NotificationChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CQ",
                     *         "type": "notification",
                     *         "attributes": {
                     *           "name": "On call",
                     *           "events": [
                     *             "destination.failing"
                     *           ],
                     *           "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                     *           "quiet_seconds": 900,
                     *           "silence_hours": 72,
                     *           "is_active": true,
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listNotificationNotices: {
        parameters: {
            query?: {
                /** @description Only rows before this id. Pass `next_cursor` of the previous page. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                before?: string;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CQ
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CP",
                     *           "type": "notice",
                     *           "attributes": {
                     *             "notice_type": "relay.delivery.failed",
                     *             "status": "delivered",
                     *             "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                     *             "data": {
                     *               "workspace": "acme/invoices",
                     *               "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                     *               "summary": "1 delivery to destination Invoice archive (objstore) failed with credentials_refused.",
                     *               "opened_at": "2026-11-21T09:00:03.000Z",
                     *               "console_url": "https://relay.example.com/console/attention",
                     *               "count": 1,
                     *               "destination": {
                     *                 "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *                 "name": "Invoice archive",
                     *                 "type": "objstore"
                     *               },
                     *               "error": {
                     *                 "code": "credentials_refused",
                     *                 "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                     *               },
                     *               "remedy": "Save valid credentials for destination Invoice archive, then retry the document.",
                     *               "document": {
                     *                 "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *                 "repo_id": "Z1",
                     *                 "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                     *                 "comp_id": "data",
                     *                 "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *                 "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *                 "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                     *               }
                     *             },
                     *             "attempts": 1,
                     *             "last_error": null,
                     *             "last_error_code": null,
                     *             "next_attempt_at": null,
                     *             "delivered_at": "2026-11-21T09:01:00.184Z",
                     *             "created_at": "2026-11-21T09:01:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "per_page": 25,
                     *         "next_cursor": null
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NoticeList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testNotification: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CQ
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "success",
                     *         "message": "The relay wrote an object to the bucket invoices and removed it."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestResultResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRepositories: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only repositories with this status. */
                status?: components["schemas"]["ActivityStatusInput"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *           "type": "repository",
                     *           "attributes": {
                     *             "repo_id": "Z1",
                     *             "name": "Incoming invoices",
                     *             "status": "active",
                     *             "signature_verification": true,
                     *             "signed_parameter_order": "fixed",
                     *             "accepts_mcreate": false,
                     *             "upstream": {
                     *               "url": "https://archive.example/archive",
                     *               "cont_rep": "Z1",
                     *               "auth_id": "CN=SAP,O=ACME,C=DE",
                     *               "certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *               "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *               "proxy_url": "http://***@outgoing.example:3128",
                     *               "allowed_cidrs": [
                     *                 "192.0.2.0/24"
                     *               ],
                     *               "delivers": true
                     *             },
                     *             "document_count": 1,
                     *             "active_certificates": 1,
                     *             "last_request_at": "2026-11-21T09:00:00.000Z",
                     *             "warnings": [],
                     *             "created_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RepositoryList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createRepository: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "repo_id": "Z1",
                 *       "name": "Incoming invoices"
                 *     }
                 */
                "application/json": components["schemas"]["RepositoryInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *         "type": "repository",
                     *         "attributes": {
                     *           "repo_id": "Z1",
                     *           "name": "Incoming invoices",
                     *           "status": "active",
                     *           "signature_verification": true,
                     *           "signed_parameter_order": "fixed",
                     *           "accepts_mcreate": false,
                     *           "upstream": {
                     *             "url": "https://archive.example/archive",
                     *             "cont_rep": "Z1",
                     *             "auth_id": "CN=SAP,O=ACME,C=DE",
                     *             "certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "proxy_url": "http://***@outgoing.example:3128",
                     *             "allowed_cidrs": [
                     *               "192.0.2.0/24"
                     *             ],
                     *             "delivers": true
                     *           },
                     *           "document_count": 1,
                     *           "active_certificates": 1,
                     *           "last_request_at": "2026-11-21T09:00:00.000Z",
                     *           "warnings": [],
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RepositoryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The workspace already has a repository with this `repo_id`. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getRepository: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *         "type": "repository",
                     *         "attributes": {
                     *           "repo_id": "Z1",
                     *           "name": "Incoming invoices",
                     *           "status": "active",
                     *           "signature_verification": true,
                     *           "signed_parameter_order": "fixed",
                     *           "accepts_mcreate": false,
                     *           "upstream": {
                     *             "url": "https://archive.example/archive",
                     *             "cont_rep": "Z1",
                     *             "auth_id": "CN=SAP,O=ACME,C=DE",
                     *             "certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "proxy_url": "http://***@outgoing.example:3128",
                     *             "allowed_cidrs": [
                     *               "192.0.2.0/24"
                     *             ],
                     *             "delivers": true
                     *           },
                     *           "document_count": 1,
                     *           "active_certificates": 1,
                     *           "last_request_at": "2026-11-21T09:00:00.000Z",
                     *           "warnings": [],
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z",
                     *           "certificates": [
                     *             {
                     *               "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                     *               "subject": "CN=SAP,O=ACME,C=DE",
                     *               "valid_from": "2026-11-21T08:00:00.000Z",
                     *               "valid_to": "2036-11-21T09:00:00.000Z",
                     *               "status": "active"
                     *             }
                     *           ],
                     *           "connections": [
                     *             {
                     *               "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *               "name": "Invoices to the archive",
                     *               "destination_name": "Invoice archive",
                     *               "status": "active"
                     *             }
                     *           ]
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleRepositoryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteRepository: {
        parameters: {
            query?: {
                /** @description With `true`, nothing is deleted: the response lists what the deletion would remove. */
                dry_run?: boolean;
                /** @description With `true`, connections that also link others stay, without what is deleted. Only a connection that would be empty is deleted. */
                keep_connections?: boolean;
            };
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description With `dry_run=true`: what the deletion would remove. Nothing was deleted. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "removed_connections": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CB",
                     *             "name": "Invoices to the archive"
                     *           }
                     *         ],
                     *         "unlinked_connections": [],
                     *         "removed_notifications": [],
                     *         "unwired_repositories": [
                     *           {
                     *             "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *             "repo_id": "Z1",
                     *             "name": "Incoming invoices"
                     *           }
                     *         ],
                     *         "affected_destinations": [],
                     *         "failed_documents_delivered": 0
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RemovalResponse"];
                };
            };
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    /** @description The ids of the other destinations that also lose documents, separated by commas; empty if there are none. At most 200: the audit entry names all. */
                    "X-Relay-Affected-Destinations"?: string;
                    /** @description The ids of the connections that were deleted too, separated by commas; empty if there were none. At most 200: the audit entry names all. */
                    "X-Relay-Removed-Connections"?: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateRepository: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Incoming invoices",
                 *       "status": "active",
                 *       "signature_verification": true,
                 *       "signed_parameter_order": "fixed",
                 *       "accepts_mcreate": false,
                 *       "upstream": {
                 *         "url": "https://archive.example/archive",
                 *         "cont_rep": "Z1"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RepositoryChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                     *         "type": "repository",
                     *         "attributes": {
                     *           "repo_id": "Z1",
                     *           "name": "Incoming invoices",
                     *           "status": "active",
                     *           "signature_verification": true,
                     *           "signed_parameter_order": "fixed",
                     *           "accepts_mcreate": false,
                     *           "upstream": {
                     *             "url": "https://archive.example/archive",
                     *             "cont_rep": "Z1",
                     *             "auth_id": "CN=SAP,O=ACME,C=DE",
                     *             "certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                     *             "proxy_url": "http://***@outgoing.example:3128",
                     *             "allowed_cidrs": [
                     *               "192.0.2.0/24"
                     *             ],
                     *             "delivers": true
                     *           },
                     *           "document_count": 1,
                     *           "active_certificates": 1,
                     *           "last_request_at": "2026-11-21T09:00:00.000Z",
                     *           "warnings": [],
                     *           "created_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RepositoryResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRepositoryCertificates: {
        parameters: {
            query?: {
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                     *           "type": "certificate",
                     *           "attributes": {
                     *             "auth_id": "CN=SAP,O=ACME,C=DE",
                     *             "status": "active",
                     *             "subject": "CN=SAP,O=ACME,C=DE",
                     *             "issuer": "CN=SAP,O=ACME,C=DE",
                     *             "serial_number": "0A21070212345678",
                     *             "valid_from": "2026-11-21T08:00:00.000Z",
                     *             "valid_to": "2036-11-21T09:00:00.000Z",
                     *             "key_algorithm": "EC",
                     *             "key_bits": 256,
                     *             "fingerprint_sha1": "9cb92e54815e08f10f2177f40ab7633dcb9c3e10",
                     *             "fingerprint_sha256": "a16e0d945f3bc872119e4d076bf2583c90ade41f7a26b5c308df61942b7ef05d",
                     *             "warnings": [],
                     *             "received_at": "2026-11-21T08:30:00.000Z",
                     *             "updated_at": "2026-11-21T08:30:00.000Z"
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["CertificateList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createRepositoryCertificate: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "auth_id": "CN=SAP,O=ACME,C=DE",
                 *       "certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n"
                 *     }
                 */
                "application/json": components["schemas"]["CertificateInput"];
            };
        };
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                     *         "type": "certificate",
                     *         "attributes": {
                     *           "auth_id": "CN=SAP,O=ACME,C=DE",
                     *           "status": "active",
                     *           "subject": "CN=SAP,O=ACME,C=DE",
                     *           "issuer": "CN=SAP,O=ACME,C=DE",
                     *           "serial_number": "0A21070212345678",
                     *           "valid_from": "2026-11-21T08:00:00.000Z",
                     *           "valid_to": "2036-11-21T09:00:00.000Z",
                     *           "key_algorithm": "EC",
                     *           "key_bits": 256,
                     *           "fingerprint_sha1": "9cb92e54815e08f10f2177f40ab7633dcb9c3e10",
                     *           "fingerprint_sha256": "a16e0d945f3bc872119e4d076bf2583c90ade41f7a26b5c308df61942b7ef05d",
                     *           "warnings": [],
                     *           "received_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["CertificateResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository already has this certificate for this `auth_id`, or has reached the maximum number of certificates. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteInactiveCertificates: {
        parameters: {
            query: {
                /**
                 * @description Must be `inactive`. Active certificates are deleted one by one.
                 * @example inactive
                 */
                status: "inactive";
            };
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteRepositoryCertificate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the certificate.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CM
                 */
                certificateId: string;
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. The response has no body. */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateRepositoryCertificate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the certificate.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CM
                 */
                certificateId: string;
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "status": "active"
                 *     }
                 */
                "application/json": components["schemas"]["CertificateChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                     *         "type": "certificate",
                     *         "attributes": {
                     *           "auth_id": "CN=SAP,O=ACME,C=DE",
                     *           "status": "active",
                     *           "subject": "CN=SAP,O=ACME,C=DE",
                     *           "issuer": "CN=SAP,O=ACME,C=DE",
                     *           "serial_number": "0A21070212345678",
                     *           "valid_from": "2026-11-21T08:00:00.000Z",
                     *           "valid_to": "2036-11-21T09:00:00.000Z",
                     *           "key_algorithm": "EC",
                     *           "key_bits": 256,
                     *           "fingerprint_sha1": "9cb92e54815e08f10f2177f40ab7633dcb9c3e10",
                     *           "fingerprint_sha256": "a16e0d945f3bc872119e4d076bf2583c90ade41f7a26b5c308df61942b7ef05d",
                     *           "warnings": [],
                     *           "received_at": "2026-11-21T08:30:00.000Z",
                     *           "updated_at": "2026-11-21T08:30:00.000Z"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["CertificateResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    checkRepository: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "profile": "smoke"
                 *     }
                 */
                "application/json": components["schemas"]["RepositoryCheckInput"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "profile": "smoke",
                     *         "signed": true,
                     *         "started_at": "2026-11-21T08:30:00.000Z",
                     *         "duration_ms": 1240,
                     *         "passed": 9,
                     *         "failed": 1,
                     *         "not_offered": 0,
                     *         "not_checked": 0,
                     *         "interrupted": false,
                     *         "left_behind": [],
                     *         "results": [
                     *           {
                     *             "id": "access",
                     *             "title": "a request of the source system is accepted",
                     *             "status": "failed",
                     *             "message": "info was answered with 403 (address_not_allowed: this workspace does not accept requests from your address)",
                     *             "remedy": "See the reason of the server.",
                     *             "duration_ms": 12
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["RepositoryCheckResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository is inactive, no connection leads from it to a destination, or a check of the workspace is running. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    sendTestDocument: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The resource was created. */
            201: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                     *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestDocumentResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository is inactive, no connection leads from it to a destination, or the workspace stores as much as it may. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testUpstream: {
        parameters: {
            query?: never;
            header?: {
                /** @description Accepted like that of every `POST`, and without effect: the request changes nothing, so a repetition is executed. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CH
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "success",
                     *         "message": "The relay wrote an object to the bucket invoices and removed it."
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TestResultResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository has no upstream. */
            409: components["responses"]["Conflict"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listRequests: {
        parameters: {
            query?: {
                /** @description Only rows after this id, oldest first. Pass the id of the last row that was read, or 00000000000000000000000000 to begin with the oldest. A row is found a minute after the time of its id. Not with `before`. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                after?: string;
                /** @description Only rows before this id. Pass `next_cursor` of the previous page. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CE`. */
                before?: string;
                /** @description Only requests to the receiver or only requests to the bridge. */
                channel?: components["schemas"]["ChannelInput"];
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only requests with this `docId` in the query string. Example: `005056B5A3F21EEFA9C1D04F7B6E8C11`. */
                doc_id?: string;
                /** @description Only the request that created this document (`id`). Example: `01K9R4B6ZD8M2V7X0QF3N5T1CF`. */
                document_id?: string;
                /** @description Only requests answered with this error, for example `signature_invalid`. Example: `credentials_refused`. */
                error_code?: string;
                /** @description Only requests with this HTTP method. Example: `PUT`. */
                method?: string;
                /** @description The number of rows per page. */
                per_page?: number;
                /** @description Only requests with this `contRep` in the query string. Example: `Z1`. */
                repo_id?: string;
                /** @description Only requests answered with a status of this class. */
                status_class?: "2xx" | "3xx" | "4xx" | "5xx";
                /** @description Only requests answered with this status. */
                status_code?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *           "type": "captured_request",
                     *           "attributes": {
                     *             "channel": "receiver",
                     *             "workspace_id": "01K9R4B6ZD8M2V7X0QF3N5T1CW",
                     *             "http_method": "PUT",
                     *             "uri": "/receiver/acme/invoices",
                     *             "query_string": "create&pVersion=0047&contRep=Z1&docId=005056B5A3F21EEFA9C1D04F7B6E8C11&compId=data",
                     *             "request_content_type": "application/pdf",
                     *             "request_content_length": 48213,
                     *             "request_body_truncated": false,
                     *             "request_body_truncation_reason": null,
                     *             "source_ip": "192.0.2.17",
                     *             "request_at": "2026-11-21T09:00:00.000Z",
                     *             "status_code": 201,
                     *             "error_code": null,
                     *             "response_content_type": "",
                     *             "response_content_length": 0,
                     *             "response_body_truncated": false,
                     *             "response_body_truncation_reason": null,
                     *             "duration_ms": 184,
                     *             "response_at": "2026-11-21T09:00:00.184Z",
                     *             "created_at": "2026-11-21T09:00:00.184Z",
                     *             "document_ids": [
                     *               "01K9R4B6ZD8M2V7X0QF3N5T1CF"
                     *             ]
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "per_page": 25,
                     *         "next_cursor": null
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["CapturedRequestList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CE
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *         "type": "captured_request",
                     *         "attributes": {
                     *           "channel": "receiver",
                     *           "workspace_id": "01K9R4B6ZD8M2V7X0QF3N5T1CW",
                     *           "http_method": "PUT",
                     *           "uri": "/receiver/acme/invoices",
                     *           "query_string": "create&pVersion=0047&contRep=Z1&docId=005056B5A3F21EEFA9C1D04F7B6E8C11&compId=data",
                     *           "request_content_type": "application/pdf",
                     *           "request_content_length": 48213,
                     *           "request_body_truncated": false,
                     *           "request_body_truncation_reason": null,
                     *           "source_ip": "192.0.2.17",
                     *           "request_at": "2026-11-21T09:00:00.000Z",
                     *           "status_code": 201,
                     *           "error_code": null,
                     *           "response_content_type": "",
                     *           "response_content_length": 0,
                     *           "response_body_truncated": false,
                     *           "response_body_truncation_reason": null,
                     *           "duration_ms": 184,
                     *           "response_at": "2026-11-21T09:00:00.184Z",
                     *           "created_at": "2026-11-21T09:00:00.184Z",
                     *           "document_ids": [
                     *             "01K9R4B6ZD8M2V7X0QF3N5T1CF"
                     *           ],
                     *           "request_headers": {
                     *             "content-type": "application/pdf"
                     *           },
                     *           "response_headers": {
                     *             "x-relay-request-id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                     *           },
                     *           "request_body_preview": null,
                     *           "response_body_preview": null,
                     *           "replay_of": null
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SingleCapturedRequestResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getRequestBody: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CE
                 */
                id: string;
                /**
                 * @description Which body to download.
                 * @example request
                 */
                kind: "request" | "response";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                    "application/octet-stream": string;
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayRequest: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets the first answer. */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the resource.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CE
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request was accepted. */
            202: {
                headers: {
                    /** @description Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. */
                    "idempotent-replayed"?: "true";
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "replay_of": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                     *         "new_request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CR"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReplayResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The request cannot be repeated: its body is not stored or contains redacted values, or it is a call through the bridge. The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost. */
            409: components["responses"]["Conflict"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CW",
                     *         "type": "settings",
                     *         "attributes": {
                     *           "max_retries": 10,
                     *           "retry_ttl_seconds": 86400,
                     *           "retry_initial_interval_seconds": 10,
                     *           "retry_max_interval_seconds": 3600,
                     *           "captured_requests_days": 30,
                     *           "captured_bodies_days": 7,
                     *           "audit_days": 365,
                     *           "events_days": 0,
                     *           "content_days": 90,
                     *           "receiver_allowed_cidrs": [
                     *             "192.0.2.0/24"
                     *           ],
                     *           "receiver_max_bytes": 0,
                     *           "receiver_max_requests_per_minute": 1,
                     *           "rfc": {
                     *             "url": "https://erp.example.com:44300",
                     *             "client": "100",
                     *             "language": "EN",
                     *             "allowed_functions": [
                     *               "ARCHIV_CONNECTION_INSERT"
                     *             ],
                     *             "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n"
                     *           },
                     *           "tier": "standard"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SettingsResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateSettings: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing. */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "max_retries": 10,
                 *       "retry_ttl_seconds": 86400,
                 *       "retry_initial_interval_seconds": 10,
                 *       "retry_max_interval_seconds": 3600,
                 *       "captured_requests_days": 30,
                 *       "captured_bodies_days": 7,
                 *       "audit_days": 365,
                 *       "events_days": 0,
                 *       "content_days": 90,
                 *       "receiver_allowed_cidrs": [
                 *         "192.0.2.0/24"
                 *       ],
                 *       "receiver_max_bytes": 0,
                 *       "receiver_max_requests_per_minute": 1,
                 *       "rfc": {
                 *         "url": "https://erp.example.com:44300",
                 *         "client": "100",
                 *         "language": "EN",
                 *         "allowed_functions": [
                 *           "ARCHIV_CONNECTION_INSERT"
                 *         ],
                 *         "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n",
                 *         "credentials": {
                 *           "user": "RELAY_RFC",
                 *           "password": "correct-horse-battery-staple"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["SettingsChange"];
            };
        };
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    /** @description The version of the resource, for `If-Match`. It changes with the values that a client can read and change. */
                    etag: string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CW",
                     *         "type": "settings",
                     *         "attributes": {
                     *           "max_retries": 10,
                     *           "retry_ttl_seconds": 86400,
                     *           "retry_initial_interval_seconds": 10,
                     *           "retry_max_interval_seconds": 3600,
                     *           "captured_requests_days": 30,
                     *           "captured_bodies_days": 7,
                     *           "audit_days": 365,
                     *           "events_days": 0,
                     *           "content_days": 90,
                     *           "receiver_allowed_cidrs": [
                     *             "192.0.2.0/24"
                     *           ],
                     *           "receiver_max_bytes": 0,
                     *           "receiver_max_requests_per_minute": 1,
                     *           "rfc": {
                     *             "url": "https://erp.example.com:44300",
                     *             "client": "100",
                     *             "language": "EN",
                     *             "allowed_functions": [
                     *               "ARCHIV_CONNECTION_INSERT"
                     *             ],
                     *             "ca_certificate": "-----BEGIN CERTIFICATE-----\nMIIBmzCCAUOgAwIBAgIICiEHAhI0VngwCgYIKoZIzj0EAwIwKjELMAkGA1UEBhMC\nREUxDTALBgNVBAoMBEFDTUUxDDAKBgNVBAMMA1NBUDAeFw0yNjExMjYyMDU1MDRa\nFw0zNjExMjMyMDU1MDRaMCoxCzAJBgNVBAYTAkRFMQ0wCwYDVQQKDARBQ01FMQww\nCgYDVQQDDANTQVAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZIgc4Lgx6oTmo\nKCXKKvL5pB+n+S3Xba/W+sr/GenHaVVbsZxlYXhTvC/mkMySJZrlfPUVgNqfedfC\njHzbaOOao1MwUTAdBgNVHQ4EFgQUv3pgVnqGePxMb/QihjBRE+w88G8wHwYDVR0j\nBBgwFoAUv3pgVnqGePxMb/QihjBRE+w88G8wDwYDVR0TAQH/BAUwAwEB/zAKBggq\nhkjOPQQDAgNGADBDAiBS1ehpZLl2FvrlDd5t3N7c7EsZA/m/q3SRU5Va/ed6BAIf\nR+RYoJltUZn3gg5WIxk21F1+NhfJplyLRQysExNmOg==\n-----END CERTIFICATE-----\n"
                     *           },
                     *           "tier": "standard"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SettingsResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getStats: {
        parameters: {
            query?: {
                /** @description Only deliveries to destinations with this connector. */
                connector_type?: components["schemas"]["ConnectorTypeInput"];
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only deliveries to this destination. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                destination_id?: string;
                /** @description Only documents of this repository (`repo_id`). Example: `Z1`. */
                repo_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "01K9R4B6ZD8M2V7X0QF3N5T1CW",
                     *         "type": "stats",
                     *         "attributes": {
                     *           "date_from": "2026-11-21T09:00:00.000Z",
                     *           "date_to": "2026-11-21T10:00:00.000Z",
                     *           "documents": {
                     *             "pending": 0,
                     *             "delivered": 1,
                     *             "failed": 0,
                     *             "retrying": 0,
                     *             "discarded": 0
                     *           },
                     *           "deliveries": {
                     *             "pending": 0,
                     *             "held": 0,
                     *             "retrying": 0,
                     *             "delivered": 1,
                     *             "failed": 0,
                     *             "cancelled": 0
                     *           },
                     *           "attempts": {
                     *             "delivered": 1,
                     *             "superseded": 0,
                     *             "retryable": 0,
                     *             "permanent": 1,
                     *             "interrupted": 0
                     *           },
                     *           "interval": "hour",
                     *           "series": [
                     *             {
                     *               "start": "2026-11-21T09:00:00.000Z",
                     *               "received": 1,
                     *               "delivered": 1,
                     *               "failed": 1,
                     *               "latency": {
                     *                 "p50_ms": 630684,
                     *                 "p95_ms": 630684,
                     *                 "p99_ms": 630684
                     *               }
                     *             }
                     *           ],
                     *           "oldest_deliveries": [],
                     *           "errors": [
                     *             {
                     *               "code": "credentials_refused",
                     *               "attempts": 1
                     *             }
                     *           ],
                     *           "latency": {
                     *             "p50_ms": 630684,
                     *             "p95_ms": 630684,
                     *             "p99_ms": 630684
                     *           },
                     *           "present": {
                     *             "unacknowledged_failures": 0,
                     *             "unacknowledged_discards": 0,
                     *             "pending": 0,
                     *             "held": 0,
                     *             "retrying": 0
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StatsResponse"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDestinationStats: {
        parameters: {
            query?: {
                /** @description Start of the range, inclusive. A date without a time means the start of that day in UTC. Example: `2026-11-01T00:00:00.000Z`. */
                date_from?: string;
                /** @description End of the range, inclusive. A date without a time means the end of that day in UTC. Example: `2026-11-30T23:59:59.999Z`. */
                date_to?: string;
                /** @description Only this destination. Example: `01K9R4B6ZD8M2V7X0QF3N5T1CG`. */
                destination_id?: string;
                /** @description The page number, starting at 1. */
                page?: number;
                /** @description The number of rows per page. */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request succeeded. */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    "x-relay-version": components["headers"]["RelayVersion"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                     *           "type": "destination_stats",
                     *           "attributes": {
                     *             "destination_name": "Invoice archive",
                     *             "series": [
                     *               {
                     *                 "start": "2026-11-21T09:00:00.000Z",
                     *                 "delivered": 1,
                     *                 "failed": 1
                     *               }
                     *             ],
                     *             "current_deliveries": {
                     *               "pending": 0,
                     *               "held": 0,
                     *               "retrying": 0,
                     *               "delivered": 1,
                     *               "failed": 0,
                     *               "cancelled": 0
                     *             },
                     *             "oldest_delivery": null
                     *           }
                     *         }
                     *       ],
                     *       "meta": {
                     *         "current_page": 1,
                     *         "per_page": 25,
                     *         "total": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["DestinationStatsList"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    onCertificateReceived: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example certificate.received
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "certificate.received",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "certificate_id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                 *         "repository_id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *         "auth_id": "CN=SAP,O=ACME,C=DE",
                 *         "subject": "CN=SAP,O=ACME,C=DE",
                 *         "fingerprint_sha256": "a16e0d945f3bc872119e4d076bf2583c90ade41f7a26b5c308df61942b7ef05d"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CertificateReceivedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDeliveryCancelled: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example delivery.cancelled
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "delivery.cancelled",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "attempts": 1,
                 *         "ended_by": "destination_deleted",
                 *         "error_code": null
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DeliveryCancelledEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDeliveryDelivered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example delivery.delivered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "delivery.delivered",
                 *       "timestamp": "2026-11-21T09:10:30.684Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "attempts": 2,
                 *         "location": "s3://invoices/sap/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DeliveryDeliveredEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDeliveryFailed: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example delivery.failed
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "delivery.failed",
                 *       "timestamp": "2026-11-21T09:00:03.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "destination_id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "attempts": 1,
                 *         "ended_by": "permanent_error",
                 *         "error_code": "credentials_refused"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DeliveryFailedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentAcknowledged: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.acknowledged
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.acknowledged",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentAcknowledgedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentAppended: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.appended
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.appended",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "size_bytes": 48213
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentAppendedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.deleted
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.deleted",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentDeletedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentDelivered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.delivered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.delivered",
                 *       "timestamp": "2026-11-21T09:10:30.684Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentDeliveredEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentDiscarded: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.discarded
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.discarded",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "reason": "filter"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentDiscardedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentErased: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.erased
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.erased",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentErasedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentFailed: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.failed
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.failed",
                 *       "timestamp": "2026-11-21T09:00:03.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentFailedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentMetadata: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.metadata
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.metadata",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "delivery_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF_01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "erp_object_type": "BUS2081",
                 *         "erp_object_id": "51056001232026",
                 *         "ar_object": "ZFIINVOICE",
                 *         "fields": {
                 *           "vendor": "Acme Ltd"
                 *         },
                 *         "path": "s3://invoices/sap/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data",
                 *         "received_at": "2026-11-21T09:00:00.000Z"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentMetadataMessage"];
            };
        };
        responses: {
            /** @description The data was accepted. After any other answer, the relay sends it again, for a day at most. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentMetadataUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.metadata_updated
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.metadata_updated",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "changed": "fields"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentMetadataUpdatedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentReceived: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.received
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.received",
                 *       "timestamp": "2026-11-21T09:00:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1,
                 *         "content_type": "application/pdf",
                 *         "size_bytes": 48213,
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE",
                 *         "erp_object_type": null,
                 *         "erp_object_id": null,
                 *         "ar_object": null
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentReceivedEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onDocumentSuperseded: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example document.superseded
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "document.superseded",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "document_id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "repo_id": "Z1",
                 *         "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *         "comp_id": "data",
                 *         "revision": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DocumentSupersededEvent"];
            };
        };
        responses: {
            /** @description The event was accepted. After any other answer, the relay sends it again, and later ones wait. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayCertificateExpiring: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.certificate.expiring
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.certificate.expiring",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Certificate CN=SAP,O=ACME,C=DE of repository Z1 expires on 2036-11-21.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/repositories/01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         },
                 *         "certificate": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                 *           "auth_id": "CN=SAP,O=ACME,C=DE",
                 *           "valid_to": "2036-11-21T09:00:00.000Z"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayCertificateExpiringMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayCertificateRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.certificate.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.certificate.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Certificate CN=SAP,O=ACME,C=DE of repository Z1 no longer needs to be renewed.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/repositories/01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         },
                 *         "certificate": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CM",
                 *           "auth_id": "CN=SAP,O=ACME,C=DE",
                 *           "valid_to": "2036-11-21T09:00:00.000Z"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayCertificateRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayDeliveryFailed: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.delivery.failed
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.delivery.failed",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "1 delivery to destination Invoice archive (objstore) failed with credentials_refused.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/attention",
                 *         "count": 1,
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "name": "Invoice archive",
                 *           "type": "objstore"
                 *         },
                 *         "error": {
                 *           "code": "credentials_refused",
                 *           "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                 *         },
                 *         "remedy": "Save valid credentials for destination Invoice archive, then retry the document.",
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayDeliveryFailedMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayDeliveryRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.delivery.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.delivery.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "No delivery to destination Invoice archive (objstore) that failed with credentials_refused needs attention any more.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/attention",
                 *         "count": 1,
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "name": "Invoice archive",
                 *           "type": "objstore"
                 *         },
                 *         "error": {
                 *           "code": "credentials_refused",
                 *           "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                 *         },
                 *         "remedy": "Save valid credentials for destination Invoice archive, then retry the document.",
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayDeliveryRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayDestinationFailing: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.destination.failing
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.destination.failing",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Destination Invoice archive (objstore) fails: 1 attempt without success.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/destinations/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "count": 1,
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "name": "Invoice archive",
                 *           "type": "objstore"
                 *         },
                 *         "error": {
                 *           "code": "credentials_refused",
                 *           "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                 *         },
                 *         "remedy": "Save valid credentials for destination Invoice archive, then retry the document.",
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayDestinationFailingMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayDestinationRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.destination.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.destination.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Destination Invoice archive (objstore) no longer fails.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/destinations/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *         "count": 1,
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "name": "Invoice archive",
                 *           "type": "objstore"
                 *         },
                 *         "error": {
                 *           "code": "credentials_refused",
                 *           "message": "The bucket invoices answered 403 InvalidAccessKeyId"
                 *         },
                 *         "remedy": "Save valid credentials for destination Invoice archive, then retry the document.",
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayDestinationRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayEnrichmentFailing: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.enrichment.failing
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.enrichment.failing",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Enrichment MM invoices fails: its latest 1 document lacks business data.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/enrichments/01K9R4B6ZD8M2V7X0QF3N5T1CS?document=01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "count": 1,
                 *         "enrichment": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                 *           "name": "MM invoices"
                 *         },
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayEnrichmentFailingMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayEnrichmentRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.enrichment.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.enrichment.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Enrichment MM invoices no longer fails.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/enrichments/01K9R4B6ZD8M2V7X0QF3N5T1CS?document=01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *         "count": 1,
                 *         "enrichment": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CS",
                 *           "name": "MM invoices"
                 *         },
                 *         "document": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "repo_id": "Z1",
                 *           "doc_id": "005056B5A3F21EEFA9C1D04F7B6E8C11",
                 *           "comp_id": "data",
                 *           "console_url": "https://relay.example.com/console/documents/01K9R4B6ZD8M2V7X0QF3N5T1CF",
                 *           "workflow_id": "document/acme/invoices/Z1/005056B5A3F21EEFA9C1D04F7B6E8C11/data/01K9R4B6ZD8M2V7X0QF3N5T1CF/01K9R4B6ZD8M2V7X0QF3N5T1CG",
                 *           "workflow_url": "https://temporal.example.com/namespaces/default/workflows/document%2Facme%2Finvoices%2FZ1%2F005056B5A3F21EEFA9C1D04F7B6E8C11%2Fdata%2F01K9R4B6ZD8M2V7X0QF3N5T1CF%2F01K9R4B6ZD8M2V7X0QF3N5T1CG"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayEnrichmentRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayEventSubscriptionFailing: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.event_subscription.failing
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.event_subscription.failing",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Event subscription Data warehouse is behind: Operations has not accepted the next event in 1 attempt.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/subscriptions/01K9R4B6ZD8M2V7X0QF3N5T1CV",
                 *         "count": 1,
                 *         "subscription": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                 *           "name": "Data warehouse"
                 *         },
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                 *           "name": "Operations",
                 *           "type": "webhook"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayEventSubscriptionFailingMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayEventSubscriptionRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.event_subscription.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.event_subscription.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Event subscription Data warehouse no longer fails.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/subscriptions/01K9R4B6ZD8M2V7X0QF3N5T1CV",
                 *         "count": 1,
                 *         "subscription": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CV",
                 *           "name": "Data warehouse"
                 *         },
                 *         "destination": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CY",
                 *           "name": "Operations",
                 *           "type": "webhook"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayEventSubscriptionRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayNotificationTest: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.notification.test
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.notification.test",
                 *       "timestamp": "2026-11-21T08:30:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "This is a test of the notification On call of Document Relay. No incident has begun.",
                 *         "opened_at": "2026-11-21T08:30:00.000Z",
                 *         "count": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayNotificationTestMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayRepositoryNotConnected: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.repository.not_connected
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.repository.not_connected",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Repository Z1 has no connection to a destination and has discarded 1 document.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/documents?status=discarded&repo_id=Z1",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayRepositoryNotConnectedMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayRepositoryRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.repository.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.repository.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Repository Z1 no longer discards documents for lack of a connection.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/documents?status=discarded&repo_id=Z1",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayRepositoryRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelaySourceRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.source.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.source.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "The silence of repository Z1 has ended.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/requests?repo_id=Z1",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         },
                 *         "last_request_at": "2026-11-21T09:00:00.000Z"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelaySourceRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelaySourceSilent: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.source.silent
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.source.silent",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "Repository Z1 has received no request since 2026-11-21T09:00:00.000Z.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/requests?repo_id=Z1",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         },
                 *         "last_request_at": "2026-11-21T09:00:00.000Z"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelaySourceSilentMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayUpstreamFailing: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.upstream.failing
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.upstream.failing",
                 *       "timestamp": "2026-11-21T09:01:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "The upstream of repository Z1 fails: documents that only it has, and new ones, are answered with 503.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "console_url": "https://relay.example.com/console/repositories/01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayUpstreamFailingMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onRelayUpstreamRecovered: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The SHA-256 of the body (RFC 9530).
                 * @example sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:
                 */
                "content-digest": string;
                /**
                 * @description One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:
                 */
                signature?: string;
                /**
                 * @description What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.
                 * @example relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"
                 */
                "signature-input"?: string;
                /**
                 * @description The id of the message, the same in every attempt to send it.
                 * @example 01K9R4B6ZD8M2V7X0QF3N5T1CP
                 */
                "webhook-id": string;
                /**
                 * @description One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none, or makes others.
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature"?: string;
                /**
                 * @description When this attempt was made, in seconds since 1970.
                 * @example 1795338000
                 */
                "webhook-timestamp": string;
                /**
                 * @description The type of the message, as in the body.
                 * @example relay.upstream.recovered
                 */
                "x-relay-event-type": string;
                /**
                 * @description The workspace, as in the body: `{userSlug}/{workspaceSlug}`.
                 * @example acme/invoices
                 */
                "x-relay-workspace": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "relay.upstream.recovered",
                 *       "timestamp": "2026-11-21T09:11:00.000Z",
                 *       "data": {
                 *         "workspace": "acme/invoices",
                 *         "incident_id": "01K9R4B6ZD8M2V7X0QF3N5T1CN",
                 *         "summary": "The upstream of repository Z1 no longer fails.",
                 *         "opened_at": "2026-11-21T09:00:03.000Z",
                 *         "closed_at": "2026-11-21T09:11:00.000Z",
                 *         "console_url": "https://relay.example.com/console/repositories/01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *         "count": 1,
                 *         "repository": {
                 *           "id": "01K9R4B6ZD8M2V7X0QF3N5T1CH",
                 *           "repo_id": "Z1"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RelayUpstreamRecoveredMessage"];
            };
        };
        responses: {
            /** @description The notice was accepted. After any other answer, the relay sends it again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
