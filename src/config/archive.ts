import { z } from 'zod'
import { integer, flag, GiB, TiB } from './values.ts'

/** Variables of the receivers: limits of documents and searches, signatures, threads, and the content store. */
export const archiveVariables = {
  RELAY_DOCUMENT_MAX_BYTES: integer(4 * GiB, 1, 'Maximum size of the body of one request from the source system'),
  RELAY_WORKSPACE_MAX_BYTES: integer(
    1 * TiB,
    0,
    'Maximum size of the stored content of one workspace. receiver_max_bytes of a workspace can lower it. 0 means no limit',
  ),
  RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: integer(
    60_000,
    0,
    'Maximum number of receiver requests per minute of one workspace, per process. ' +
      'receiver_max_requests_per_minute of a workspace can lower it. 0 means no limit',
  ),
  RELAY_APPEND_QUIET_MS: integer(60_000, 0, 'Time without a further append after which an appended component is delivered again'),
  RELAY_SEARCH_TIMEOUT_MS: integer(30_000, 1, 'Maximum duration of one search or attrSearch. After it, the search is answered 503'),
  RELAY_SIGNATURE_SKEW_MS: integer(
    120_000,
    0,
    'Time after its expiration for which a signed URL is still accepted, to allow for clock differences',
  ),
  RELAY_SIGNATURE_SCOPE: z
    .enum(['all', 'doc_prot'])
    .default('all')
    .describe(
      'Commands that need a signature in a repository with signature_verification: all of them, or those that the ' +
        'docProt of the document names',
    ),
  RELAY_DRAIN_MS: integer(
    0,
    0,
    'Time after SIGTERM for which an API process still accepts requests, while /healthz and /readyz answer 503 so that a load balancer ' +
      'stops sending them. Must be longer than the load balancer takes to notice',
  ),
  RELAY_SHUTDOWN_GRACE_MS: integer(
    10_000,
    0,
    'Time that running requests and attempts have to finish after SIGTERM, and after RELAY_DRAIN_MS',
  ),

  CONTENT_S3_BUCKET: z
    .string()
    .optional()
    .describe('S3 bucket that stores the content of new documents. Without it, and without CONTENT_DIR, content is stored in PostgreSQL'),
  CONTENT_S3_REGION: z.string().default('us-east-1').describe('Region of the bucket'),
  CONTENT_S3_ENDPOINT: z.string().optional().describe('URL of an S3-compatible store other than AWS'),
  CONTENT_S3_PATH_STYLE: flag(false, 'If true, the bucket name is part of the path instead of the host name'),
  CONTENT_S3_PREFIX: z.string().default('').describe('Prefix of all object keys'),
  CONTENT_S3_ACCESS_KEY_ID: z.string().optional().describe('Access key id. Without it, the default credential chain of AWS is used'),
  CONTENT_S3_SECRET_ACCESS_KEY: z.string().optional().describe('Secret access key that belongs to CONTENT_S3_ACCESS_KEY_ID'),
  CONTENT_DIR: z
    .string()
    .optional()
    .describe(
      'Existing directory that stores the content of new documents as files, unless CONTENT_S3_BUCKET is set. All API processes and ' +
        'workers must have it, and its file system must keep what was synced',
    ),
  CONTENT_DIR_MIN_BYTES: integer(
    65_536,
    0,
    'Size from which a content is a file. A smaller one is held in memory and stored in PostgreSQL, in the transaction of its document',
  ),
  CONTENT_ORPHAN_AGE_MS: integer(24 * 3_600_000, 60_000, 'Age after which content that belongs to no document is deleted'),
}
