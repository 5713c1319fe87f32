import { isPermanentStatus } from './shared/final-statuses.ts'

/** The kind of change that a failed delivery needs before it can succeed. */
export type Remedy = 'credentials' | 'permission' | 'configuration' | 'target' | 'relay'

interface ErrorCode {
  /**
   * `true` if retrying cannot succeed before an operator acts. Absent if it depends on the case; then the thrower decides.
   */
  permanent?: boolean
  remedy: Remedy
  /** Replaces the action of the remedy if that is too vague. `{destination}` stands for the name. */
  action?: string
}

const actions: Record<Remedy, string> = {
  credentials: 'Save valid credentials for {destination}',
  permission: 'Give the account of {destination} the missing permissions',
  configuration: 'Correct the configuration of {destination}',
  target: 'Check that {destination} is reachable and accepts requests',
  relay: 'Correct the problem in the relay that the error names',
}

/**
 * Every code with which a delivery or a test of a destination can fail, except the families `http_<status>` and
 * `smtp_<code>`.
 */
export const errorCodes = {
  access_denied: { remedy: 'permission' },
  answer_unreadable: { permanent: false, remedy: 'target' },
  answered_early: {
    permanent: false,
    remedy: 'target',
    action: 'Check that the target of {destination} reads a request to its end before it answers',
  },
  api_disabled: {
    permanent: true,
    remedy: 'permission',
    action: 'Enable the Google Drive API in the project of the service account of {destination}',
  },
  attempt_timeout: {
    permanent: false,
    remedy: 'target',
    action: 'Check how fast {destination} accepts data, or raise DELIVERY_ATTEMPT_TIMEOUT_MS',
  },
  blocked_address: {
    permanent: true,
    remedy: 'configuration',
    action: 'Change the address of {destination}, or allow its range in RELAY_ALLOWED_PRIVATE_CIDRS if it is meant to be private',
  },
  bucket_missing: { permanent: true, remedy: 'configuration', action: 'Create the bucket, or correct the bucket of {destination}' },
  certificate_refused: {
    permanent: false,
    remedy: 'target',
    action: 'Renew the TLS certificate of the target, or correct ca_certificate of {destination}',
  },
  config_invalid: {
    permanent: true,
    remedy: 'configuration',
    action: 'Save {destination} again with the values that the error names corrected',
  },
  connection_failed: { permanent: false, remedy: 'target' },
  connection_lost: { permanent: false, remedy: 'target' },
  connection_refused: { permanent: false, remedy: 'target' },
  connector_unknown: { permanent: false, remedy: 'relay', action: 'Run the same version of the relay on every worker' },
  container_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Create or enable the container, or correct the container of {destination}',
  },
  content_altered: { permanent: false, remedy: 'target' },
  content_store_missing: {
    permanent: false,
    remedy: 'relay',
    action: 'Configure every worker with the content store that the API processes use',
  },
  content_unreadable: { permanent: false, remedy: 'relay', action: "Check the relay's content store and the log of the worker" },
  copy_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Let {destination} lead to the place where the document was stored',
  },
  credentials_refused: { remedy: 'credentials' },
  directory_missing: { permanent: true, remedy: 'configuration', action: 'Create the folder, or correct its path in {destination}' },
  directory_not_allowed: {
    permanent: true,
    remedy: 'configuration',
    action: 'Correct the path of {destination}, or allow its directory in RELAY_DIRECTORY_ROOTS',
  },
  file_system_failure: {
    permanent: false,
    remedy: 'target',
    action: 'Check that the file system of {destination} is mounted on every worker and works',
  },
  folder_full: {
    permanent: true,
    remedy: 'configuration',
    action: 'Remove files from the folder, or choose another folder for {destination}',
  },
  folder_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Share the folder with the account, or correct folder_id of {destination}',
  },
  handshake_failed: { permanent: false, remedy: 'target' },
  helo_refused: {
    permanent: true,
    remedy: 'configuration',
    action: 'Set helo_name of {destination} to a name that the mail server accepts, or let the server accept the name',
  },
  host_key_mismatch: {
    permanent: true,
    remedy: 'configuration',
    action: "Ask the server's administrator whether the host key has changed, and correct host_key_sha256 of {destination}",
  },
  host_not_found: {
    permanent: false,
    remedy: 'target',
    action: 'Check the host name of {destination} and the name resolution of the workers',
  },
  host_unreachable: { permanent: false, remedy: 'target' },
  interrupted: { permanent: false, remedy: 'relay', action: 'Check why workers of the relay stop during deliveries' },
  library_missing: { permanent: true, remedy: 'configuration', action: 'Create the library, or correct document_library of {destination}' },
  link_unavailable: {
    permanent: true,
    remedy: 'relay',
    action: 'Set RELAY_BASE_URL for the workers, or raise max_attachment_bytes of {destination}',
  },
  locked: { permanent: false, remedy: 'target', action: 'Close or check in the file that the document replaces at {destination}' },
  login_unsupported: {
    permanent: true,
    remedy: 'target',
    action: 'Log in to {destination} by password or by token as its mail server offers, or let it accept this login',
  },
  message_refused: {
    permanent: true,
    remedy: 'target',
    action: 'Ask the administrator of the mail server of {destination} why it refuses the message',
  },
  message_too_large: { permanent: true, remedy: 'configuration', action: 'Lower max_attachment_bytes of {destination}' },
  not_a_blob_service: { permanent: false, remedy: 'configuration', action: 'Correct account_url of {destination}' },
  lock_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Enable Object Lock on the bucket, or immutability of versions on the container, or correct the retention of {destination}',
  },
  overwrite_forbidden: {
    permanent: true,
    remedy: 'configuration',
    action:
      'Compare what is stored at {destination} under the name of the document, and remove it there, or let path_template of the connection give the document another name',
  },
  path_refused: { permanent: true, remedy: 'configuration', action: 'Correct path_template of the connection to {destination}' },
  path_too_long: {
    permanent: true,
    remedy: 'configuration',
    action: 'Shorten path_template of the connection, or the prefix or folder of {destination}',
  },
  permission_denied: { permanent: true, remedy: 'permission' },
  probe_timeout: { permanent: false, remedy: 'target' },
  proxy_failed: {
    permanent: false,
    remedy: 'relay',
    action: 'Correct RELAY_OUTBOUND_PROXY, or let the proxy connect to the target of {destination}, or list it in RELAY_OUTBOUND_NO_PROXY',
  },
  quota_exceeded: { permanent: false, remedy: 'target', action: 'Free storage at {destination}, or raise its quota' },
  rate_limited: {
    permanent: false,
    remedy: 'target',
    action: 'Lower max_deliveries_per_minute of {destination}, or raise the quota of the account',
  },
  recipient_refused: {
    permanent: true,
    remedy: 'configuration',
    action: 'Correct the recipients of {destination}, or let the account send to them',
  },
  repository_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Create the repository at the content server, or correct url and repository of {destination}',
  },
  request_failed: { permanent: false, remedy: 'target' },
  sender_refused: {
    permanent: true,
    remedy: 'configuration',
    action: 'Correct the sender of {destination}, or let the account send as that address',
  },
  sftp_failure: { permanent: false, remedy: 'target' },
  sftp_unavailable: {
    permanent: false,
    remedy: 'target',
    action: 'Let the account of {destination} use SFTP at its server, and let its login print nothing',
  },
  site_missing: {
    permanent: true,
    remedy: 'configuration',
    action: 'Correct site_url of {destination}, or give the application access to the site',
  },
  smtp_failure: { permanent: false, remedy: 'target' },
  storage_full: { permanent: false, remedy: 'target', action: 'Free storage at {destination}, or raise its quota' },
  retention_unknown: {
    permanent: false,
    remedy: 'configuration',
    action: 'Let an enrichment find the date of retain_until, or set retain_days of {destination}',
  },
  storage_quota_exceeded: {
    remedy: 'configuration',
    action: 'Free storage of the user, or choose a folder on a shared drive for {destination}',
  },
  store_failure: { permanent: false, remedy: 'target' },
  timeout: { permanent: false, remedy: 'target' },
  tls_failed: { permanent: false, remedy: 'target', action: 'Check that {destination} offers TLS 1.2 or newer at its port' },
  tls_required: { permanent: true, remedy: 'configuration', action: 'Switch {destination} to an encrypted connection' },
  tls_unsupported: { permanent: false, remedy: 'configuration', action: 'Correct tls and port of {destination}' },
  token_refused: {
    permanent: false,
    remedy: 'permission',
    action: 'Check the permissions and the consent of the account of {destination}',
  },
  token_unreadable: { permanent: false, remedy: 'target' },
  unexpected: { permanent: false, remedy: 'relay', action: 'Report the error as a defect of the relay' },
  upload_expired: { permanent: false, remedy: 'target' },
  upload_out_of_step: { permanent: false, remedy: 'target' },
  wrong_region: { permanent: true, remedy: 'configuration', action: 'Correct the region of {destination}' },
} as const satisfies Record<string, ErrorCode>

type TableCode = keyof typeof errorCodes

/** A code from the table, or a status of the target that has no code of its own. */
export type DeliveryErrorCode = TableCode | `http_${number}` | `smtp_${number}`

/** The codes of which the code alone says whether a retry can succeed. Errors with an SMTP code are always retried. */
export type FixedErrorCode =
  | { [Code in TableCode]: (typeof errorCodes)[Code] extends { permanent: boolean } ? Code : never }[TableCode]
  | `smtp_${number}`

/** The codes of which the thrower says whether a retry can succeed. */
export type OpenErrorCode = Exclude<DeliveryErrorCode, FixedErrorCode>

/** Looks a code up, by any spelling: a newer worker may have written codes that this table does not have. */
const find = (code: string): ErrorCode | undefined => {
  if (Object.hasOwn(errorCodes, code)) return errorCodes[code as TableCode]
  const [, family, number] = /^(http|smtp)_(\d+)$/.exec(code) ?? []
  if (family === 'smtp') return { permanent: false, remedy: 'target' }
  return family === 'http' ? { remedy: remedyForStatus(Number(number)) } : undefined
}

/** Redirects and statuses that no time changes need a change of the configuration. */
const remedyForStatus = (status: number): Remedy => {
  if (status === 401) return 'credentials'
  if (status === 403) return 'permission'
  return status < 400 || isPermanentStatus(status) ? 'configuration' : 'target'
}

/** Returns what has to be mended after an error with this code. */
export const errorClassOf = (code: string): Remedy => find(code)?.remedy ?? 'target'

/** @returns `undefined` if the code alone does not decide it */
export const isPermanent = (code: DeliveryErrorCode): boolean | undefined => find(code)?.permanent

/** Returns what an operator does about an error with this code, without an end of the sentence. */
export const actionFor = (code: string | null, destinationName: string): string =>
  (find(code ?? '')?.action ?? actions[errorClassOf(code ?? '')]).replaceAll('{destination}', () => `destination ${destinationName}`)

/** What has failed: a delivery that has ended, several of them, one that is retried by itself, or a test of a destination. */
export const failedThings = ['ended', 'group', 'retried', 'test'] as const
export type FailedThing = (typeof failedThings)[number]

/** What to do about deliveries that ended without an error of an attempt: a person, or the time for retries, has ended it. */
const remedyForEnded = 'Retry what is still needed there; acknowledge the rest.'

const conclusions: Record<FailedThing, string> = {
  ended: ', then retry the document.',
  group: ', then retry the deliveries.',
  retried: '. The relay tries again by itself.',
  test: ', then test it again.',
}

/**
 * Returns what tells an operator what to do about an error with this code: the only source of such advice in English, for mails, the API, the
 * command line, the console and Temporal. @param code null if there was no error of an attempt
 */
export const remedyFor = (code: string | null, destinationName: string, failed: FailedThing): string =>
  code === null && (failed === 'ended' || failed === 'group') ? remedyForEnded : `${actionFor(code, destinationName)}${conclusions[failed]}`
