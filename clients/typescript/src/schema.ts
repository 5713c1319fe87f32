// Made from openapi.json by npm run docs; do not edit.

export interface paths {
    "/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The API keys that have not been revoked, newest first
         * @description Needs a key of level `admin`.
         */
        get: operations["listApiKeys"];
        put?: never;
        /**
         * Creates an API key; the answer shows it, this once
         * @description Needs a key of level `admin`. A success is in the audit log as `apikey.created`.
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
         * Revokes an API key, from the next request on
         * @description Needs a key of level `admin`. A success is in the audit log as `apikey.revoked`.
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
         * What was changed in the workspace and by whom, newest first
         * @description Needs a key of level `viewer`.
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
         * The same as a table in CSV, newest first; per_page has no effect here
         * @description Needs a key of level `viewer`.
         */
        get: operations["getAuditLogsCsv"];
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
         * How far a bulk retry is
         * @description Needs a key of level `viewer`.
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
         * Stops a bulk retry before its next document; what it has retried stays so
         * @description Needs a key of level `member`.
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
         * The connections of the workspace, in order of creation
         * @description Needs a key of level `viewer`.
         */
        get: operations["listConnections"];
        put?: never;
        /**
         * Links repositories to destinations
         * @description Needs a key of level `member`. A success is in the audit log as `connection.created`.
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
         * One connection, with the repositories and destinations it links
         * @description Needs a key of level `viewer`.
         */
        get: operations["getConnection"];
        put?: never;
        post?: never;
        /**
         * Deletes a connection; what it held is cancelled, what it has forwarded goes on
         * @description Needs a key of level `admin`. A success is in the audit log as `connection.deleted`.
         */
        delete: operations["deleteConnection"];
        options?: never;
        head?: never;
        /**
         * Changes a connection: a given set of ids, and given settings, replace the whole; activating it releases what it held
         * @description Needs a key of level `member`. A success is in the audit log as `connection.toggled`.
         */
        patch: operations["updateConnection"];
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
         * The destinations of the workspace, in order of creation
         * @description Needs a key of level `viewer`.
         */
        get: operations["listDestinations"];
        put?: never;
        /**
         * Creates a destination
         * @description Needs a key of level `member`. A success is in the audit log as `destination.created`.
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
         * One destination, with the connections that lead to it
         * @description Needs a key of level `viewer`.
         */
        get: operations["getDestination"];
        put?: never;
        post?: never;
        /**
         * Deletes a destination and the connections that use it, whatever else they link; what was not delivered there yet is cancelled
         * @description Needs a key of level `admin`. A success is in the audit log as `destination.deleted` or `connection.deleted`.
         */
        delete: operations["deleteDestination"];
        options?: never;
        head?: never;
        /**
         * Changes a destination: config is merged (null removes a key), credentials are replaced
         * @description Needs a key of level `member`. A success is in the audit log as `destination.updated`.
         */
        patch: operations["updateDestination"];
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
         * Tries out a destination as it is; a success makes it connected again
         * @description Needs a key of level `member`.
         */
        post: operations["testDestination"];
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
         * Tries out a configuration before it is created; nothing is kept
         * @description Needs a key of level `member`.
         */
        post: operations["testDestinations"];
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
         * The documents of the workspace, newest first
         * @description Needs a key of level `viewer`.
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
         * One document, with its metadata and where it lies at each destination
         * @description Needs a key of level `viewer`.
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
    "/documents/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every delivery attempt of a document, oldest first: how long it took, what came of it, and what the target answered
         * @description Needs a key of level `viewer`.
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
         * The bytes of a document as they were received; a discarded document has none
         * @description Needs a key of level `viewer`.
         */
        get: operations["getDocumentContent"];
        put?: never;
        post?: never;
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
         * Retries one delivery that has failed, was left behind, or is held by nothing any more
         * @description Needs a key of level `member`. A success is in the audit log as `document.retried`.
         */
        post: operations["retryDocumentDelivery"];
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
         * Retries every failed delivery of a document, with a fresh retry budget; what was delivered is not delivered again
         * @description Needs a key of level `member`. A success is in the audit log as `document.retried`.
         */
        post: operations["retryDocument"];
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
         * Tells what a docId is about: sets the given values on all documents that were received under it
         * @description Needs a key of level `member`.
         */
        put: operations["putDocumentsByDocIdMetadata"];
        post?: never;
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
         * Retries every failed delivery that the filters match, in the background; a dry run only counts them
         * @description Needs a key of level `member`. A success is in the audit log as `document.retried`.
         */
        post: operations["retryDocuments"];
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
         * The repositories of the workspace, in order of creation
         * @description Needs a key of level `viewer`.
         */
        get: operations["listRepositories"];
        put?: never;
        /**
         * Creates a repository; repo_id is what the source system calls it, and cannot be changed later
         * @description Needs a key of level `member`. A success is in the audit log as `repository.created`.
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
         * One repository, with its certificates and the connections that start from it
         * @description Needs a key of level `viewer`.
         */
        get: operations["getRepository"];
        put?: never;
        post?: never;
        /**
         * Deletes a repository, its certificates and its active connections, whatever else they link; documents already received stay
         * @description Needs a key of level `admin`. A success is in the audit log as `repository.deleted` or `cert.deleted` or `connection.deleted`.
         */
        delete: operations["deleteRepository"];
        options?: never;
        head?: never;
        /**
         * Changes a repository; an inactive one refuses documents
         * @description Needs a key of level `member`. A success is in the audit log as `repository.updated`.
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
         * The certificates of a repository, in order of receipt, with the fingerprints to compare before activation
         * @description Needs a key of level `viewer`.
         */
        get: operations["listRepositoryCertificates"];
        put?: never;
        /**
         * Adds a certificate that the source system has not sent itself: PEM, or base64 of DER or PKCS#7
         * @description Needs a key of level `admin`. A success is in the audit log as `cert.received` or `cert.activated`.
         */
        post: operations["createRepositoryCertificate"];
        delete?: never;
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
         * Removes a certificate; the source system may send it again, and it is inactive then
         * @description Needs a key of level `admin`. A success is in the audit log as `cert.deleted`.
         */
        delete: operations["deleteRepositoryCertificate"];
        options?: never;
        head?: never;
        /**
         * Activates a certificate, so that requests signed with its key are taken, or deactivates it
         * @description Needs a key of level `admin`. A success is in the audit log as `cert.activated` or `cert.deactivated`.
         */
        patch: operations["updateRepositoryCertificate"];
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
         * The requests that reached receivers and bridges, newest first
         * @description Needs a key of level `viewer`.
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
         * One captured request with its headers, and its bodies where they are small text
         * @description Needs a key of level `viewer`.
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
         * The bytes of a captured request, or of its response, with their own content type; 404 where none are kept
         * @description Needs a key of level `viewer`.
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
         * Sends a captured request through the receiver again, its signature judged as of then; the new one is captured in turn
         * @description Needs a key of level `admin`.
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
         * The settings of the workspace, defaults included
         * @description Needs a key of level `viewer`.
         */
        get: operations["getSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Changes settings; those not given stay
         * @description Needs a key of level `admin`.
         */
        patch: operations["updateSettings"];
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ApiKey: {
            attributes: {
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                expires_at: string | null;
                /** Format: date-time */
                last_used_at: string | null;
                /** @enum {string} */
                level: "viewer" | "member" | "admin";
                name: string;
                user_id: string | null;
            };
            id: string;
            /** @constant */
            type: "api_key";
        };
        Certificate: {
            attributes: {
                auth_id: string;
                fingerprint_sha1: string;
                fingerprint_sha256: string;
                issuer: string;
                key_algorithm: string;
                key_bits: number | null;
                /** Format: date-time */
                received_at: string;
                serial_number: string;
                /** @enum {string} */
                status: "active" | "inactive";
                subject: string;
                /** Format: date-time */
                updated_at: string;
                /** Format: date-time */
                valid_from: string;
                /** Format: date-time */
                valid_to: string;
            };
            id: string;
            /** @constant */
            type: "certificate";
        };
        Connection: {
            /** Format: date-time */
            created_at: string;
            destinations: {
                id: string;
                name: string;
                /** @enum {string} */
                type: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook";
            }[];
            id: string;
            is_active: boolean;
            name: string;
            repositories: {
                description: string;
                id: string;
                repo_id: string;
            }[];
            settings: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            updated_at: string;
        };
        Destination: {
            attributes: {
                config: {
                    [key: string]: unknown;
                };
                /** @enum {string} */
                connector_type: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook";
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                last_delivered_at: string | null;
                last_error: string | null;
                name: string;
                /** @enum {string} */
                status: "connected" | "failing";
                /** Format: date-time */
                updated_at: string;
            };
            id: string;
            /** @constant */
            type: "destination";
        };
        /** config of blob */
        DestinationConfigBlob: {
            /**
             * Format: uri
             * @description Address of the storage account: https://NAME.blob.core.windows.net, or that of another cloud (usgovcloudapi.net, chinacloudapi.cn), a private endpoint, or an emulator (http://HOST:PORT/NAME)
             */
            account_url: string;
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /** @description Container; it must exist */
            container: string;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description Put before every name as it is; a folder ends with a slash
             * @default
             */
            prefix?: string;
        };
        /** config of drive */
        DestinationConfigDrive: {
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /** @description Folder that documents are put into: the last part of its address, https://drive.google.com/drive/folders/FOLDER_ID. A shared drive's own id is a folder too */
            folder_id: string;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * Format: email
             * @description User in whose name documents are put there, by domain-wide delegation; the files are theirs then, and count against their storage
             */
            subject?: string;
        };
        /** config of email */
        DestinationConfigEmail: {
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /** @description Further recipients, likewise */
            cc?: string | string[];
            /**
             * Format: email
             * @description Sender, an address without a name
             */
            from: string;
            /** @description Host name or address of the SMTP server */
            host: string;
            /**
             * @description A larger document is not attached: the mail holds a link to it. Sent in base64, it takes up a third more
             * @default 10485760
             */
            max_attachment_bytes?: number;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /** @description TCP port; 587, with tls implicit 465, with none 25 */
            port?: number;
            /**
             * @description Subject. Placeholders: repo_id, doc_id, comp_id, yyyy, mm, dd, ar_object, ext, file_name
             * @default Document {doc_id} ({comp_id}) from {repo_id}
             */
            subject_template?: string;
            /**
             * @description starttls: the connection must change over to TLS before anything is said; implicit: it begins with TLS; none: everybody on the way can read along, and a password is not sent
             * @default starttls
             * @enum {string}
             */
            tls?: "starttls" | "implicit" | "none";
            /** @description One recipient or an array of up to 100 */
            to: string | string[];
        };
        /** config of objstore */
        DestinationConfigObjstore: {
            /** @description Bucket; it must exist */
            bucket: string;
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /**
             * Format: uri
             * @description Address of a store other than AWS, http or https
             */
            endpoint?: string;
            /** @description Key for aws:kms; without it the default key of the account */
            kms_key_id?: string;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description Bucket in the path instead of the host name, as most stores other than AWS want it
             * @default false
             */
            path_style?: boolean;
            /**
             * @description Put before every key as it is; a folder ends with a slash
             * @default
             */
            prefix?: string;
            /** @description Region of the bucket, like eu-central-1; for other stores whatever they expect, often us-east-1 */
            region: string;
            /**
             * @description Encryption asked of the store; without it that of the bucket
             * @enum {string}
             */
            server_side_encryption?: "AES256" | "aws:kms" | "aws:kms:dsse";
            /** @description Storage class of new objects, like STANDARD_IA; without it that of the bucket */
            storage_class?: string;
        };
        /** config of sftp */
        DestinationConfigSftp: {
            /**
             * @description Folder that documents are put under; it must exist, folders below it are made as needed. A relative one begins where the account is put after login
             * @default .
             */
            directory?: string;
            /** @description Host name or address */
            host: string;
            /** @description Fingerprint of the host key, as `ssh-keygen -lf` prints it (SHA256:...) or in hex. Without it any key is taken, so that anyone on the way could pose as the server: set it */
            host_key_sha256?: string;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description TCP port
             * @default 22
             */
            port?: number;
        };
        /** config of teamsite */
        DestinationConfigTeamsite: {
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /**
             * @description The Microsoft cloud the tenant belongs to: usgov is GCC High, china 21Vianet; GCC belongs to global
             * @default global
             * @enum {string}
             */
            cloud?: "global" | "usgov" | "usgov-dod" | "china";
            /** @description Name of the document library as the site shows it, like Documents; it must exist. Upper and lower case are one */
            document_library: string;
            /**
             * @description Folder of the library that documents are put under, like Incoming/SAP; made as needed
             * @default
             */
            folder?: string;
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * Format: uri
             * @description The site's own address, like https://contoso.sharepoint.com/sites/Finance: without a library, a page or a query behind it
             */
            site_url: string;
        };
        /** config of webhook */
        DestinationConfigWebhook: {
            /** @description PEM of the authority that signed the certificate of the target; trusted in place of the public ones */
            ca_certificate?: string;
            /**
             * @description What the body is: the document's own bytes, a form with metadata and file, or a JSON object with the content in base64
             * @default raw
             * @enum {string}
             */
            format?: "raw" | "multipart" | "json";
            /**
             * @description Up to 50 further headers, sent as they are. Those that the relay or the connection sets are refused, and so are names that sound like a secret: give it in the credentials, which are never shown
             * @default {}
             */
            headers?: {
                [key: string]: string;
            };
            /** @description Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION */
            max_concurrent_deliveries?: number;
            /** @description Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION */
            max_deliveries_per_minute?: number;
            /**
             * @description HTTP method
             * @default POST
             * @enum {string}
             */
            method?: "POST" | "PUT";
            /**
             * Format: uri
             * @description Where documents are sent, http or https; without user name and password
             */
            url: string;
        };
        /** credentials of blob */
        DestinationCredentialsBlob: {
            /**
             * Format: password
             * @description Key of the storage account. It signs for the account that account_url names in its host, so a custom domain needs one of the other ways
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
             * @description Shared access signature for the container: the part of a SAS address after its question mark
             */
            sas_token?: string;
            /** @description Directory (tenant) id, or a domain of the tenant */
            tenant_id?: string;
        };
        /** credentials of drive */
        DestinationCredentialsDrive: {
            /**
             * Format: password
             * @description The key file of a service account, as the object it holds; further keys of it may stay
             */
            service_account: {
                /** @description Address of the account */
                client_email: string;
                /**
                 * Format: password
                 * @description Its key
                 */
                private_key: string;
                /** @description Which of its keys that is */
                private_key_id?: string;
                /**
                 * Format: uri
                 * @description Where tokens are asked for
                 * @default https://oauth2.googleapis.com/token
                 */
                token_uri?: string;
                /**
                 * @description What the key file is for
                 * @constant
                 */
                type: "service_account";
            };
        };
        /** credentials of email */
        DestinationCredentialsEmail: {
            /**
             * Format: password
             * @description Its password
             */
            password?: string;
            /** @description Account, where the server asks for one */
            username?: string;
        };
        /** credentials of objstore */
        DestinationCredentialsObjstore: {
            /** @description Access key of an account that may write there */
            access_key_id: string;
            /**
             * Format: password
             * @description Its secret
             */
            secret_access_key: string;
            /**
             * Format: password
             * @description Belongs to credentials that are good for a time only
             */
            session_token?: string;
        };
        /** credentials of sftp */
        DestinationCredentialsSftp: {
            /**
             * Format: password
             * @description Opens the private key
             */
            passphrase?: string;
            /**
             * Format: password
             * @description Its password, where it has no key; also given where the server asks for it in a dialogue (keyboard-interactive)
             */
            password?: string;
            /**
             * Format: password
             * @description In OpenSSH or PEM form
             */
            private_key?: string;
            /** @description Account */
            username: string;
        };
        /** credentials of teamsite */
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
        /** credentials of webhook */
        DestinationCredentialsWebhook: {
            /**
             * Format: password
             * @description Sent as Authorization: Bearer
             */
            bearer_token?: string;
            /** @description With header_value: a header that carries a secret */
            header_name?: string;
            /**
             * Format: password
             * @description Belongs to header_name
             */
            header_value?: string;
            /**
             * Format: password
             * @description Belongs to username
             */
            password?: string;
            /**
             * Format: password
             * @description Signs beside the new secret while receivers change over
             */
            previous_secret?: string;
            /**
             * Format: password
             * @description Signs every request (Standard Webhooks): whsec_ and base64, or any text, whose UTF-8 bytes are then the key
             */
            secret?: string;
            /** @description With password: sent as Authorization: Basic */
            username?: string;
        };
        Document: {
            attributes: {
                comp_id: string;
                content_type: string;
                deliveries: {
                    attempts: number;
                    /** Format: date-time */
                    delivered_at: string | null;
                    destination_id: string;
                    destination_name: string;
                    /** @enum {string} */
                    status: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
                }[];
                doc_id: string;
                /** Format: date-time */
                received_at: string;
                repo_id: string;
                size_bytes: number;
                /** @enum {string} */
                status: "pending" | "delivered" | "failed" | "retrying" | "discarded";
            };
            id: string;
            /** @constant */
            type: "document";
        };
        Error: {
            error: {
                /**
                 * @description Stable: programs decide by it
                 * @enum {string}
                 */
                code: "invalid_request" | "unauthorized" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "gone" | "payload_too_large" | "unsupported_media_type" | "validation_failed" | "abap_exception" | "rate_limited" | "rfc_failed" | "unavailable" | "rfc_timeout" | "internal_error";
                /** @description There where single values are at fault */
                details?: {
                    message: string;
                    /** @description As the value stands in the request, like config.bucket */
                    path: string;
                }[];
                /** @description For people; may change */
                message: string;
                /** @description The same as in the header x-relay-request-id */
                request_id: string;
            };
        };
        NewApiKey: {
            attributes: {
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                expires_at: string | null;
                /** @description Shown this once */
                key: string;
                /** Format: date-time */
                last_used_at: string | null;
                /** @enum {string} */
                level: "viewer" | "member" | "admin";
                name: string;
                user_id: string | null;
            };
            id: string;
            /** @constant */
            type: "api_key";
        };
        Repository: {
            attributes: {
                /** Format: date-time */
                created_at: string;
                document_count: number;
                name: string;
                repo_id: string;
                signature_verification: boolean;
                /** @enum {string} */
                status: "active" | "inactive";
                /** Format: date-time */
                updated_at: string;
            };
            id: string;
            /** @constant */
            type: "repository";
        };
        Settings: {
            attributes: {
                /** @description How long audit entries are kept; null, for compliance-tier workspaces only: indefinitely */
                audit_days: number | null;
                /** @description How long their bodies are kept */
                captured_bodies_days: number;
                /** @description How long captured requests are kept */
                captured_requests_days: number;
                /** @description How long the bytes of delivered documents are kept; null: indefinitely */
                content_days: number | null;
                /** @description Tries after the first one; 0 means none */
                max_retries: number;
                /** @description Where the source system may send from; empty: anywhere */
                receiver_allowed_cidrs: (string)[];
                /** @description Before the second try; doubles from there */
                retry_initial_interval_seconds: number;
                /** @description The longest pause between two tries */
                retry_max_interval_seconds: number;
                /** @description Every try begins within this time of the first one */
                retry_ttl_seconds: number;
                /** @description The system whose functions the bridge calls; null: no bridge */
                rfc: {
                    /**
                     * @description Only these are called; empty: none
                     * @default []
                     */
                    allowed_functions: string[];
                    /** @description PEM. Trusted in place of the public authorities, for a system with a company's own */
                    ca_certificate?: string;
                    /** @description Logged on to */
                    client: string;
                    /** @description Of messages; without it, the user's own */
                    language?: string;
                    /** @description Scheme, host and port of the system */
                    url: string;
                } | null;
            };
            id: string;
            /** @constant */
            type: "settings";
        };
        SingleDestination: {
            attributes: {
                config: {
                    [key: string]: unknown;
                };
                connections: {
                    id: string;
                    source_name: string;
                    source_repo_id: string;
                    /** @enum {string} */
                    status: "active" | "inactive";
                }[];
                /** @enum {string} */
                connector_type: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook";
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                last_delivered_at: string | null;
                last_error: string | null;
                name: string;
                /** @enum {string} */
                status: "connected" | "failing";
                /** Format: date-time */
                updated_at: string;
            };
            id: string;
            /** @constant */
            type: "destination";
        };
        SingleDocument: {
            attributes: {
                comp_id: string;
                content_type: string;
                deliveries: {
                    attempts: number;
                    /** Format: date-time */
                    delivered_at: string | null;
                    destination_id: string;
                    destination_name: string;
                    /** @description Where the document lies at the destination */
                    path: string;
                    /** @enum {string} */
                    status: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
                }[];
                doc_id: string;
                metadata: {
                    ar_object: string | null;
                    erp_object_id: string | null;
                    erp_object_type: string | null;
                };
                /** Format: date-time */
                received_at: string;
                repo_id: string;
                size_bytes: number;
                /** @enum {string} */
                status: "pending" | "delivered" | "failed" | "retrying" | "discarded";
            };
            id: string;
            /** @constant */
            type: "document";
        };
        SingleRepository: {
            attributes: {
                certificates: {
                    id: string;
                    /** @enum {string} */
                    status: "active" | "inactive";
                    subject: string;
                    /** Format: date-time */
                    valid_from: string;
                    /** Format: date-time */
                    valid_to: string;
                }[];
                connections: {
                    destination_name: string;
                    id: string;
                    /** @enum {string} */
                    status: "active" | "inactive";
                }[];
                /** Format: date-time */
                created_at: string;
                document_count: number;
                name: string;
                repo_id: string;
                signature_verification: boolean;
                /** @enum {string} */
                status: "active" | "inactive";
                /** Format: date-time */
                updated_at: string;
            };
            id: string;
            /** @constant */
            type: "repository";
        };
    };
    responses: {
        /** @description The present state does not allow it */
        Conflict: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "conflict",
                 *         "message": "The present state does not allow it",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key's level is too low */
        Forbidden: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "forbidden",
                 *         "message": "The key's level is too low",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A defect of ours: report it with its request_id */
        InternalError: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "internal_error",
                 *         "message": "A defect of ours: report it with its request_id",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Malformed JSON, a missing field, a wrong type, an unknown key, an unknown or malformed query value */
        InvalidRequest: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "invalid_request",
                 *         "message": "Malformed JSON, a missing field, a wrong type, an unknown key, an unknown or malformed query value",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unknown, or of another workspace: the two answers differ in nothing but request_id */
        NotFound: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "not_found",
                 *         "message": "Unknown, or of another workspace: the two answers differ in nothing but request_id",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is larger than the service takes */
        PayloadTooLarge: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "payload_too_large",
                 *         "message": "The body is larger than the service takes",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many wrong keys from this address */
        RateLimited: {
            headers: {
                "retry-after": components["headers"]["RetryAfter"];
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "rate_limited",
                 *         "message": "Too many wrong keys from this address",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No key, or none that is good for this workspace */
        Unauthorized: {
            headers: {
                "www-authenticate": "Bearer";
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unauthorized",
                 *         "message": "No key, or none that is good for this workspace",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description What the answer needs is away or busy, like the database or the content store; nothing is half done */
        Unavailable: {
            headers: {
                /** @description Seconds, where they can be told */
                "retry-after"?: number;
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unavailable",
                 *         "message": "What the answer needs is away or busy, like the database or the content store; nothing is half done",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is not application/json, or has a content encoding */
        UnsupportedMediaType: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "unsupported_media_type",
                 *         "message": "The body is not application/json, or has a content encoding",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Well-formed, but wrong: details names each value that does not fit */
        ValidationFailed: {
            headers: {
                "x-relay-request-id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "code": "validation_failed",
                 *         "message": "Well-formed, but wrong: details names each value that does not fit",
                 *         "request_id": "01K9R4B6ZD8M2V7X0QF3N5T1CE"
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
        /** @description The id of this request: quote it to the operator */
        RequestId: string;
        /** @description Seconds to wait */
        RetryAfter: number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listApiKeys: {
        parameters: {
            query?: {
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The API keys that have not been revoked, newest first */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["ApiKey"][];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "...",
                 *       "level": "viewer"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: date-time
                     * @description From then on it is refused; null: never
                     */
                    expires_at?: string | null;
                    /**
                     * @description What it may do
                     * @enum {string}
                     */
                    level: "viewer" | "member" | "admin";
                    /** @description What people call it */
                    name: string;
                    /**
                     * @description The member it belongs to, whom the audit log then names
                     * @default null
                     */
                    user_id?: string | null;
                };
            };
        };
        responses: {
            /** @description Creates an API key; the answer shows it, this once */
            201: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["NewApiKey"];
                    };
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
    deleteApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; nothing to say */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAuditLogs: {
        parameters: {
            query?: {
                /** @description The rows before this one: next_cursor of the page before */
                before?: string;
                /** @description From here on; a mere date means its first moment, in UTC */
                date_from?: string;
                /** @description Up to and with here; a mere date means its last moment, in UTC */
                date_to?: string;
                /** @description The exact name of an event */
                event?: "cert.received" | "cert.activated" | "cert.deactivated" | "cert.deleted" | "repository.created" | "repository.updated" | "repository.deleted" | "destination.created" | "destination.updated" | "destination.deleted" | "connection.created" | "connection.toggled" | "connection.deleted" | "document.retried" | "apikey.created" | "apikey.revoked" | "rfc.call";
                /** @description The beginning of its name, like `cert.` */
                event_prefix?: string;
                /** @description Rows to a page */
                per_page?: number;
                /** @description The id of what was changed */
                subject_id?: string;
                /** @description What kind of thing was changed */
                subject_type?: "Certificate" | "Repository" | "Destination" | "Connection" | "Document" | "ApiKey" | "RfcCall";
                /** @description The member who did it */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was changed in the workspace and by whom, newest first */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** @enum {string} */
                                actor_type: "user" | "api_key" | "system";
                                /** Format: date-time */
                                created_at: string;
                                description: string;
                                /** @enum {string} */
                                event: "cert.received" | "cert.activated" | "cert.deactivated" | "cert.deleted" | "repository.created" | "repository.updated" | "repository.deleted" | "destination.created" | "destination.updated" | "destination.deleted" | "connection.created" | "connection.toggled" | "connection.deleted" | "document.retried" | "apikey.created" | "apikey.revoked" | "rfc.call";
                                metadata: {
                                    [key: string]: unknown;
                                };
                                subject_id: string;
                                /** @enum {string} */
                                subject_type: "Certificate" | "Repository" | "Destination" | "Connection" | "Document" | "ApiKey" | "RfcCall";
                                user_id: string | null;
                            };
                            id: string;
                            /** @constant */
                            type: "audit_log";
                        }[];
                        meta: {
                            next_cursor: string | null;
                            per_page: number;
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getAuditLogsCsv: {
        parameters: {
            query?: {
                /** @description The rows before this one: next_cursor of the page before */
                before?: string;
                /** @description From here on; a mere date means its first moment, in UTC */
                date_from?: string;
                /** @description Up to and with here; a mere date means its last moment, in UTC */
                date_to?: string;
                /** @description The exact name of an event */
                event?: "cert.received" | "cert.activated" | "cert.deactivated" | "cert.deleted" | "repository.created" | "repository.updated" | "repository.deleted" | "destination.created" | "destination.updated" | "destination.deleted" | "connection.created" | "connection.toggled" | "connection.deleted" | "document.retried" | "apikey.created" | "apikey.revoked" | "rfc.call";
                /** @description The beginning of its name, like `cert.` */
                event_prefix?: string;
                /** @description Rows to a page */
                per_page?: number;
                /** @description The id of what was changed */
                subject_id?: string;
                /** @description What kind of thing was changed */
                subject_type?: "Certificate" | "Repository" | "Destination" | "Connection" | "Document" | "ApiKey" | "RfcCall";
                /** @description The member who did it */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The same as a table in CSV, newest first; per_page has no effect here */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
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
    getBulkRetry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far a bulk retry is */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** Format: date-time */
                                created_at: string | null;
                                /** Format: date-time */
                                ended_at: string | null;
                                filter: {
                                    /** Format: date-time */
                                    date_from?: string;
                                    /** Format: date-time */
                                    date_to?: string;
                                    destination_id?: string;
                                    repo_id?: string;
                                };
                                matched_deliveries: number;
                                matched_documents: number;
                                retried_deliveries: number;
                                retried_documents: number;
                                /** @enum {string} */
                                status: "dry_run" | "running" | "completed" | "cancelled";
                            };
                            id: string | null;
                            /** @constant */
                            type: "bulk_retry";
                        };
                    };
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
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Stops a bulk retry before its next document; what it has retried stays so */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** Format: date-time */
                                created_at: string | null;
                                /** Format: date-time */
                                ended_at: string | null;
                                filter: {
                                    /** Format: date-time */
                                    date_from?: string;
                                    /** Format: date-time */
                                    date_to?: string;
                                    destination_id?: string;
                                    repo_id?: string;
                                };
                                matched_deliveries: number;
                                matched_documents: number;
                                retried_deliveries: number;
                                retried_documents: number;
                                /** @enum {string} */
                                status: "dry_run" | "running" | "completed" | "cancelled";
                            };
                            id: string | null;
                            /** @constant */
                            type: "bulk_retry";
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description It has ended already */
            409: components["responses"]["Conflict"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listConnections: {
        parameters: {
            query?: {
                /** @description Active ones or inactive ones only */
                is_active?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connections of the workspace, in order of creation */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Connection"][];
                    };
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
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "...",
                 *       "repository_ids": [
                 *         "..."
                 *       ],
                 *       "destination_ids": [
                 *         "..."
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Where they go: the whole set of their ids */
                    destination_ids: string[];
                    /**
                     * @description An inactive one holds what arrives
                     * @default true
                     */
                    is_active?: boolean;
                    /** @description What people call it */
                    name: string;
                    /** @description Where documents come from: the whole set of their ids */
                    repository_ids: string[];
                    /**
                     * @description on_resume, path_template, filter
                     * @default {}
                     */
                    settings?: {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description Links repositories to destinations */
            201: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Connection"];
                    };
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
    getConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One connection, with the repositories and destinations it links */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Connection"];
                    };
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
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deletes a connection; what it held is cancelled, what it has forwarded goes on */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        message: string;
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "...",
                 *       "repository_ids": [
                 *         "..."
                 *       ],
                 *       "destination_ids": [
                 *         "..."
                 *       ],
                 *       "is_active": true,
                 *       "settings": {}
                 *     }
                 */
                "application/json": {
                    /** @description Where they go: the whole set of their ids */
                    destination_ids?: string[];
                    /** @description An inactive one holds what arrives */
                    is_active?: boolean;
                    /** @description What people call it */
                    name?: string;
                    /** @description Where documents come from: the whole set of their ids */
                    repository_ids?: string[];
                    /** @description on_resume, path_template, filter */
                    settings?: {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description Changes a connection: a given set of ids, and given settings, replace the whole; activating it releases what it held */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Connection"];
                    };
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
    listDestinations: {
        parameters: {
            query?: {
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
                /** @description Of this connector type only */
                type?: "objstore" | "blob" | "teamsite" | "drive" | "sftp" | "email" | "webhook";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The destinations of the workspace, in order of creation */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Destination"][];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    config: components["schemas"]["DestinationConfigObjstore"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "objstore";
                    credentials: components["schemas"]["DestinationCredentialsObjstore"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigBlob"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "blob";
                    credentials: components["schemas"]["DestinationCredentialsBlob"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigTeamsite"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "teamsite";
                    credentials: components["schemas"]["DestinationCredentialsTeamsite"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigDrive"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "drive";
                    credentials: components["schemas"]["DestinationCredentialsDrive"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigSftp"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "sftp";
                    credentials: components["schemas"]["DestinationCredentialsSftp"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigEmail"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "email";
                    credentials: components["schemas"]["DestinationCredentialsEmail"];
                    /** @description What people call it */
                    name: string;
                } | {
                    config: components["schemas"]["DestinationConfigWebhook"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "webhook";
                    credentials: components["schemas"]["DestinationCredentialsWebhook"];
                    /** @description What people call it */
                    name: string;
                };
            };
        };
        responses: {
            /** @description Creates a destination */
            201: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Destination"];
                    };
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
    getDestination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One destination, with the connections that lead to it */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SingleDestination"];
                    };
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
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; nothing to say */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateDestination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "config": {},
                 *       "credentials": {
                 *         "access_key_id": "...",
                 *         "secret_access_key": "...",
                 *         "session_token": "..."
                 *       },
                 *       "name": "..."
                 *     }
                 */
                "application/json": {
                    /** @description Merged into the present config, null removes a key. The result must be what the connector takes: DestinationConfigObjstore, DestinationConfigBlob, DestinationConfigTeamsite, DestinationConfigDrive, DestinationConfigSftp, DestinationConfigEmail, DestinationConfigWebhook */
                    config?: {
                        [key: string]: unknown;
                    };
                    /** @description Replaces the present credentials; must be what the connector takes */
                    credentials?: components["schemas"]["DestinationCredentialsObjstore"] | components["schemas"]["DestinationCredentialsBlob"] | components["schemas"]["DestinationCredentialsTeamsite"] | components["schemas"]["DestinationCredentialsDrive"] | components["schemas"]["DestinationCredentialsSftp"] | components["schemas"]["DestinationCredentialsEmail"] | components["schemas"]["DestinationCredentialsWebhook"];
                    /** @description What people call it */
                    name?: string;
                };
            };
        };
        responses: {
            /** @description Changes a destination: config is merged (null removes a key), credentials are replaced */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Destination"];
                    };
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
    testDestination: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Tries out a destination as it is; a success makes it connected again */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            message: string;
                            /** @enum {string} */
                            status: "success" | "failed";
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testDestinations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    config: components["schemas"]["DestinationConfigObjstore"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "objstore";
                    credentials: components["schemas"]["DestinationCredentialsObjstore"];
                } | {
                    config: components["schemas"]["DestinationConfigBlob"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "blob";
                    credentials: components["schemas"]["DestinationCredentialsBlob"];
                } | {
                    config: components["schemas"]["DestinationConfigTeamsite"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "teamsite";
                    credentials: components["schemas"]["DestinationCredentialsTeamsite"];
                } | {
                    config: components["schemas"]["DestinationConfigDrive"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "drive";
                    credentials: components["schemas"]["DestinationCredentialsDrive"];
                } | {
                    config: components["schemas"]["DestinationConfigSftp"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "sftp";
                    credentials: components["schemas"]["DestinationCredentialsSftp"];
                } | {
                    config: components["schemas"]["DestinationConfigEmail"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "email";
                    credentials: components["schemas"]["DestinationCredentialsEmail"];
                } | {
                    config: components["schemas"]["DestinationConfigWebhook"];
                    /**
                     * @description What kind of target it is
                     * @constant
                     */
                    connector_type: "webhook";
                    credentials: components["schemas"]["DestinationCredentialsWebhook"];
                };
            };
        };
        responses: {
            /** @description Tries out a configuration before it is created; nothing is kept */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            message: string;
                            /** @enum {string} */
                            status: "success" | "failed";
                        };
                    };
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
    listDocuments: {
        parameters: {
            query?: {
                /** @description From here on; a mere date means its first moment, in UTC */
                date_from?: string;
                /** @description Up to and with here; a mere date means its last moment, in UTC */
                date_to?: string;
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
                /** @description Of the repository that the source system calls so */
                repo_id?: string;
                /** @description In this state only */
                status?: "pending" | "delivered" | "failed" | "retrying";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The documents of the workspace, newest first */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Document"][];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One document, with its metadata and where it lies at each destination */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SingleDocument"];
                    };
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
    listDocumentAttempts: {
        parameters: {
            query?: {
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
            };
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every delivery attempt of a document, oldest first: how long it took, what came of it, and what the target answered */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                answer: {
                                    [key: string]: unknown;
                                } | null;
                                bytes_sent: number | null;
                                destination_id: string;
                                destination_name: string;
                                duration_ms: number;
                                error: {
                                    code: string;
                                    message: string;
                                } | null;
                                number: number;
                                /** @enum {string} */
                                outcome: "delivered" | "superseded" | "retryable" | "permanent" | "interrupted";
                                /** Format: date-time */
                                started_at: string;
                            };
                            id: string;
                            /** @constant */
                            type: "delivery_attempt";
                        }[];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes of a document as they were received; a discarded document has none */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
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
    retryDocumentDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The destination that it goes to */
                destinationId: string;
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Retries one delivery that has failed, was left behind, or is held by nothing any more */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                deliveries: {
                                    attempts: number;
                                    /** Format: date-time */
                                    delivered_at: string | null;
                                    destination_id: string;
                                    destination_name: string;
                                    /** @enum {string} */
                                    status: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
                                }[];
                                doc_id: string;
                                /** Format: date-time */
                                received_at: string;
                                repo_id: string;
                                /** @enum {string} */
                                status: "pending" | "delivered" | "failed" | "retrying" | "discarded";
                            };
                            id: string;
                            /** @constant */
                            type: "document";
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description It is on its way, has been made, was cancelled, or is held by an inactive connection */
            409: components["responses"]["Conflict"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryDocument: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Retries every failed delivery of a document, with a fresh retry budget; what was delivered is not delivered again */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                deliveries: {
                                    attempts: number;
                                    /** Format: date-time */
                                    delivered_at: string | null;
                                    destination_id: string;
                                    destination_name: string;
                                    /** @enum {string} */
                                    status: "pending" | "held" | "retrying" | "delivered" | "failed" | "cancelled";
                                }[];
                                doc_id: string;
                                /** Format: date-time */
                                received_at: string;
                                repo_id: string;
                                /** @enum {string} */
                                status: "pending" | "delivered" | "failed" | "retrying" | "discarded";
                            };
                            id: string;
                            /** @constant */
                            type: "document";
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description None of its deliveries has failed, or only such whose destination is deleted */
            409: components["responses"]["Conflict"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    putDocumentsByDocIdMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description What the source system calls the document */
                doc_id: string;
                /** @description The source's repository identifier */
                repo_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "erp_object_type": "...",
                 *       "erp_object_id": "...",
                 *       "ar_object": "..."
                 *     }
                 */
                "application/json": {
                    /** @description The document type of the source system */
                    ar_object?: string | null;
                    /** @description Which one of that kind */
                    erp_object_id?: string | null;
                    /** @description The kind of business object, like `BKPF`; null takes it back */
                    erp_object_type?: string | null;
                };
            };
        };
        responses: {
            /** @description Tells what a docId is about: sets the given values on all documents that were received under it */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            doc_id: string;
                            documents: number;
                            metadata: {
                                ar_object: string | null;
                                erp_object_id: string | null;
                                erp_object_type: string | null;
                            };
                            repo_id: string;
                        };
                    };
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
    retryDocuments: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "dry_run": false,
                 *       "repo_id": "...",
                 *       "status": "failed",
                 *       "destination_id": "...",
                 *       "date_from": "2026-11-21T09:00:00.000Z",
                 *       "date_to": "2026-11-21T09:00:00.000Z"
                 *     }
                 */
                "application/json": {
                    /** @description From here on; a mere date means its first moment, in UTC */
                    date_from?: string;
                    /** @description Up to and with here; a mere date means its last moment, in UTC */
                    date_to?: string;
                    /** @description Deliveries to this destination only */
                    destination_id?: string;
                    /**
                     * @description Only counts what would be retried
                     * @default false
                     */
                    dry_run?: boolean;
                    /** @description Documents of this repository only */
                    repo_id?: string;
                    /**
                     * @description As in the list of documents; nothing else can be retried
                     * @constant
                     */
                    status?: "failed";
                };
            };
        };
        responses: {
            /** @description A dry run: how much would be retried now */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** Format: date-time */
                                created_at: string | null;
                                /** Format: date-time */
                                ended_at: string | null;
                                filter: {
                                    /** Format: date-time */
                                    date_from?: string;
                                    /** Format: date-time */
                                    date_to?: string;
                                    destination_id?: string;
                                    repo_id?: string;
                                };
                                matched_deliveries: number;
                                matched_documents: number;
                                retried_deliveries: number;
                                retried_documents: number;
                                /** @enum {string} */
                                status: "dry_run" | "running" | "completed" | "cancelled";
                            };
                            id: string | null;
                            /** @constant */
                            type: "bulk_retry";
                        };
                    };
                };
            };
            /** @description Retries every failed delivery that the filters match, in the background; a dry run only counts them */
            202: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** Format: date-time */
                                created_at: string | null;
                                /** Format: date-time */
                                ended_at: string | null;
                                filter: {
                                    /** Format: date-time */
                                    date_from?: string;
                                    /** Format: date-time */
                                    date_to?: string;
                                    destination_id?: string;
                                    repo_id?: string;
                                };
                                matched_deliveries: number;
                                matched_documents: number;
                                retried_deliveries: number;
                                retried_documents: number;
                                /** @enum {string} */
                                status: "dry_run" | "running" | "completed" | "cancelled";
                            };
                            id: string | null;
                            /** @constant */
                            type: "bulk_retry";
                        };
                    };
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
    listRepositories: {
        parameters: {
            query?: {
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
                /** @description Active ones or inactive ones only */
                status?: "active" | "inactive";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The repositories of the workspace, in order of creation */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Repository"][];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "repo_id": "...",
                 *       "name": "..."
                 *     }
                 */
                "application/json": {
                    /** @description What people call it */
                    name: string;
                    /** @description What the source system calls it: `contRep` in its requests */
                    repo_id: string;
                    /**
                     * @description Whether requests of the source system must be signed
                     * @default false
                     */
                    signature_verification?: boolean;
                };
            };
        };
        responses: {
            /** @description Creates a repository; repo_id is what the source system calls it, and cannot be changed later */
            201: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Repository"];
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The workspace has a repository with this repo_id already */
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
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One repository, with its certificates and the connections that start from it */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["SingleRepository"];
                    };
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
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; nothing to say */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateRepository: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "...",
                 *       "status": "active",
                 *       "signature_verification": true
                 *     }
                 */
                "application/json": {
                    /** @description What people call it */
                    name?: string;
                    /** @description Whether requests of the source system must be signed */
                    signature_verification?: boolean;
                    /**
                     * @description An inactive one refuses documents
                     * @enum {string}
                     */
                    status?: "active" | "inactive";
                };
            };
        };
        responses: {
            /** @description Changes a repository; an inactive one refuses documents */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Repository"];
                    };
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
    listRepositoryCertificates: {
        parameters: {
            query?: {
                /** @description Which page, from 1 */
                page?: number;
                /** @description Rows to a page */
                per_page?: number;
            };
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The certificates of a repository, in order of receipt, with the fingerprints to compare before activation */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Certificate"][];
                        meta: {
                            current_page: number;
                            per_page: number;
                            total: number;
                        };
                    };
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
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "auth_id": "...",
                 *       "certificate": "..."
                 *     }
                 */
                "application/json": {
                    /** @description By which name the source system signs */
                    auth_id: string;
                    /** @description PEM, or base64 of DER or PKCS#7 */
                    certificate: string;
                    /**
                     * @description Only what an active one has signed is taken
                     * @default inactive
                     * @enum {string}
                     */
                    status?: "active" | "inactive";
                };
            };
        };
        responses: {
            /** @description Adds a certificate that the source system has not sent itself: PEM, or base64 of DER or PKCS#7 */
            201: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Certificate"];
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description The repository has this certificate for this auth_id already, or as many as it may */
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["ValidationFailed"];
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
                /** @description The id of the certificate */
                certificateId: string;
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; nothing to say */
            204: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
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
                /** @description The id of the certificate */
                certificateId: string;
                /** @description The id of the resource */
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
                "application/json": {
                    /**
                     * @description Only what an active one has signed is taken
                     * @enum {string}
                     */
                    status: "active" | "inactive";
                };
            };
        };
        responses: {
            /** @description Activates a certificate, so that requests signed with its key are taken, or deactivates it */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Certificate"];
                    };
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
    listRequests: {
        parameters: {
            query?: {
                /** @description The rows before this one: next_cursor of the page before */
                before?: string;
                /** @description That came in here only */
                channel?: "receiver" | "bridge";
                /** @description From here on; a mere date means its first moment, in UTC */
                date_from?: string;
                /** @description Up to and with here; a mere date means its last moment, in UTC */
                date_to?: string;
                /** @description Whose URL carries this docId */
                doc_id?: string;
                /** @description Sent by this HTTP method */
                method?: string;
                /** @description Rows to a page */
                per_page?: number;
                /** @description Whose URL carries this contRep */
                repo_id?: string;
                /** @description Answered by a status of this class */
                status_class?: "2xx" | "3xx" | "4xx" | "5xx";
                /** @description Answered by exactly this status */
                status_code?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The requests that reached receivers and bridges, newest first */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** @enum {string} */
                                channel: "receiver" | "bridge";
                                /** Format: date-time */
                                created_at: string;
                                duration_ms: number;
                                http_method: string;
                                query_string: string;
                                /** Format: date-time */
                                request_at: string;
                                request_body_truncated: boolean;
                                request_content_length: number;
                                /** @description Empty where the request named none */
                                request_content_type: string;
                                /** Format: date-time */
                                response_at: string;
                                response_body_truncated: boolean;
                                response_content_length: number;
                                /** @description Empty where the answer named none */
                                response_content_type: string;
                                source_ip: string;
                                status_code: number;
                                uri: string;
                                workspace_id: string;
                            };
                            id: string;
                            /** @constant */
                            type: "captured_request";
                        }[];
                        meta: {
                            next_cursor: string | null;
                            per_page: number;
                        };
                    };
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
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One captured request with its headers, and its bodies where they are small text */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            attributes: {
                                /** @enum {string} */
                                channel: "receiver" | "bridge";
                                /** Format: date-time */
                                created_at: string;
                                duration_ms: number;
                                http_method: string;
                                query_string: string;
                                replay_of: string | null;
                                /** Format: date-time */
                                request_at: string;
                                request_body_preview: string | null;
                                request_body_truncated: boolean;
                                request_content_length: number;
                                /** @description Empty where the request named none */
                                request_content_type: string;
                                request_headers: {
                                    [key: string]: string;
                                };
                                /** Format: date-time */
                                response_at: string;
                                response_body_preview: string | null;
                                response_body_truncated: boolean;
                                response_content_length: number;
                                /** @description Empty where the answer named none */
                                response_content_type: string;
                                response_headers: {
                                    [key: string]: string;
                                };
                                source_ip: string;
                                status_code: number;
                                uri: string;
                                workspace_id: string;
                            };
                            id: string;
                            /** @constant */
                            type: "captured_request";
                        };
                    };
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
                /** @description The id of the resource */
                id: string;
                /** @description Whose body */
                kind: "request" | "response";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes of a captured request, or of its response, with their own content type; 404 where none are kept */
            200: {
                headers: {
                    "content-disposition": string;
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
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
            header?: never;
            path: {
                /** @description The id of the resource */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sends a captured request through the receiver again, its signature judged as of then; the new one is captured in turn */
            202: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: {
                            new_request_id: string;
                            replay_of: string;
                        };
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            /** @description It cannot be sent again as it was: its body is not kept or was redacted, or it is a call through the bridge */
            409: components["responses"]["Conflict"];
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
            /** @description The settings of the workspace, defaults included */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Settings"];
                    };
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
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "max_retries": 0,
                 *       "retry_ttl_seconds": 1,
                 *       "retry_initial_interval_seconds": 1,
                 *       "retry_max_interval_seconds": 1,
                 *       "captured_requests_days": 1,
                 *       "captured_bodies_days": 1,
                 *       "audit_days": 1,
                 *       "content_days": 1,
                 *       "receiver_allowed_cidrs": [
                 *         "..."
                 *       ],
                 *       "rfc": {
                 *         "url": "...",
                 *         "client": "...",
                 *         "language": "...",
                 *         "allowed_functions": [
                 *           "..."
                 *         ],
                 *         "ca_certificate": "...",
                 *         "credentials": {
                 *           "user": "...",
                 *           "password": "..."
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description How long audit entries are kept; null, for compliance-tier workspaces only: indefinitely */
                    audit_days?: number | null;
                    /** @description How long their bodies are kept */
                    captured_bodies_days?: number;
                    /** @description How long captured requests are kept */
                    captured_requests_days?: number;
                    /** @description How long the bytes of delivered documents are kept; null: indefinitely */
                    content_days?: number | null;
                    /** @description Tries after the first one; 0 means none */
                    max_retries?: number;
                    /** @description Where the source system may send from; empty: anywhere */
                    receiver_allowed_cidrs?: (string)[];
                    /** @description Before the second try; doubles from there */
                    retry_initial_interval_seconds?: number;
                    /** @description The longest pause between two tries */
                    retry_max_interval_seconds?: number;
                    /** @description Every try begins within this time of the first one */
                    retry_ttl_seconds?: number;
                    /** @description The system whose functions the bridge calls: merged in; null ends the bridge */
                    rfc?: {
                        allowed_functions?: string[];
                        /** @description PEM. Trusted in place of the public authorities, for a system with a company's own */
                        ca_certificate?: string;
                        /** @description Logged on to */
                        client?: string;
                        /** @description Write-only; a new url needs them again */
                        credentials?: {
                            /** Format: password */
                            password: string;
                            /** Format: password */
                            user: string;
                        };
                        /** @description Of messages; without it, the user's own */
                        language?: string;
                        /** @description Scheme, host and port of the system */
                        url?: string;
                    } | null;
                };
            };
        };
        responses: {
            /** @description Changes settings; those not given stay */
            200: {
                headers: {
                    "x-relay-request-id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Settings"];
                    };
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
}
