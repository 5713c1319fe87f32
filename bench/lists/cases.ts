import type { Filled } from './fill.ts'

/** A request to a list. `path` is below the address of the workspace. */
export interface ListCase {
  name: string
  path(facts: Filled): string
}

const withQuery = (path: string, query: Record<string, string | number>): string => {
  const text = new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}

const maxShown = 12

const describe = (query: Record<string, string | number>) =>
  Object.entries(query)
    .filter(([name]) => name !== 'per_page')
    .map(([name, value]) => `${name}=${typeof value === 'string' && value.length > maxShown ? `${value.slice(0, maxShown)}...` : value}`)
    .join(' ')

type Query = Record<string, string | number>

const range = ({ dateFrom, dateTo }: Filled) => ({ date_from: dateFrom, date_to: dateTo })

/** Returns the cases of one list: each filter, then each with a range of ten days, then far behind the first page. */
const casesOf = (
  path: string,
  { filters, ranged = [], deep, cursor }: { filters: Query[]; ranged?: Query[]; deep?: Query[]; cursor?: (facts: Filled) => string },
): ListCase[] => [
  ...filters.map((query) => ({ name: `${path} ${describe(query)}`.trim(), path: () => withQuery(path, query) })),
  ...ranged.map((query) => ({
    name: `${path} ${describe(query)} with dates`.replace('  ', ' '),
    path: (facts: Filled) => withQuery(path, { ...query, ...range(facts) }),
  })),
  ...(deep ?? []).map((query) => ({
    name: `${path} ${describe(query)} deep by cursor`.replace('  ', ' '),
    path: (facts: Filled) => withQuery(path, { ...query, before: cursor!(facts) }),
  })),
]

const docId = `D${'500'.padStart(31, '0')}`
// Of a thousand rows, fewer than 25 meet the condition: compare pages of the same length.
const few = { per_page: 10 }

export const listCases: ListCase[] = [
  ...casesOf('/documents', {
    filters: [
      {},
      { repo_id: 'R3' },
      { status: 'delivered' },
      { status: 'failed' },
      { status: 'pending' },
      { status: 'discarded' },
      { repo_id: 'R3', status: 'delivered' },
      { acknowledged: 'true' },
      { acknowledged: 'false' },
      { acknowledged: 'false', status: 'failed' },
      { repo_id: 'R3', acknowledged: 'false' },
    ],
    ranged: [
      {},
      { repo_id: 'R3' },
      { status: 'delivered' },
      { status: 'failed' },
      { repo_id: 'R3', status: 'delivered' },
      { acknowledged: 'true', ...few },
    ],
  }),
  ...casesOf('/documents/search', {
    filters: [
      { q: docId, per_page: 1 },
      { q: '0000000500', per_page: 1 },
      { q: '000500', per_page: 1 },
      { doc_id: docId, per_page: 1 },
      { doc_id_prefix: 'D000000' },
      { erp_object_id: '100000000005002026', per_page: 1 },
      { erp_object_type: 'VBRK' },
      { ar_object: 'SDOINVOICE' },
      { content_type: 'image/tiff' },
      { content_type: 'image/tiff', repo_id: 'R3' },
      { size_min: 500 },
      { content_type: 'nothing' },
      { connector_type: 'sftp' },
      { delivery_status: 'failed' },
      { connector_type: 'sftp', delivery_status: 'failed' },
      { error_code: 'http_404', ...few },
      { error_code: 'http_404', delivery_status: 'failed', ...few },
    ],
    ranged: [{ size_min: 500 }],
    deep: [{}, { repo_id: 'R3', ...few }, { status: 'delivered' }, { status: 'failed', ...few }, { acknowledged: 'false' }],
    cursor: ({ deep }) => deep.document,
  }),
  {
    name: '/documents/search destination_id',
    path: ({ destinationId }) => withQuery('/documents/search', { destination_id: destinationId }),
  },
  { name: '/documents/:id/attempts', path: ({ documentId }) => `/documents/${documentId}/attempts` },
  ...casesOf('/failures', {
    filters: [{}, { status: 'retrying' }, { status: 'cancelled' }, { min_age_seconds: 3_600 }],
  }),
  { name: '/failures destination_id', path: ({ destinationId }) => withQuery('/failures', { destination_id: destinationId }) },
  ...casesOf('/requests', {
    filters: [
      {},
      { channel: 'bridge' },
      { status_code: 404 },
      { status_class: '4xx' },
      { status_class: '2xx' },
      { method: 'PUT' },
      { repo_id: 'R3' },
      { doc_id: docId, per_page: 1 },
      { method: 'PUT', status_class: '4xx' },
      { method: 'PUT', repo_id: 'R3' },
      { repo_id: 'R3', status_code: 404, ...few },
      { channel: 'bridge', status_class: '4xx', ...few },
      // Each condition by itself is met by many requests, both by none.
      { channel: 'bridge', repo_id: 'R3' },
    ],
    ranged: [{}, { status_class: '4xx' }, { repo_id: 'R3' }, { method: 'PUT' }],
    deep: [{}, { status_class: '4xx', ...few }, { repo_id: 'R3', ...few }],
    cursor: ({ deep }) => deep.request,
  }),
  { name: '/requests document_id', path: ({ documentId }) => withQuery('/requests', { document_id: documentId }) },
  ...casesOf('/audit-logs', {
    filters: [
      {},
      { event: 'repository.created' },
      { event_prefix: 'repository.' },
      { subject_type: 'Repository' },
      { subject_id: 'S3' },
      { user_id: 'U3' },
      { user_id: 'U3', event_prefix: 'repository.', per_page: 5 },
    ],
    ranged: [{}, { event_prefix: 'repository.' }, { subject_id: 'S3', ...few }, { user_id: 'U3' }],
    deep: [{}, { subject_id: 'S3', per_page: 5 }, { user_id: 'U3', ...few }],
    cursor: ({ deep }) => deep.auditLog,
  }),
  ...casesOf('/stats', { filters: [{}, { connector_type: 'sftp' }], ranged: [{}, { repo_id: 'R3' }] }),
  ...casesOf('/stats/destinations', { filters: [{}], ranged: [{}] }),
  ...casesOf('/destinations', { filters: [{}, { type: 'sftp' }] }),
  ...casesOf('/repositories', { filters: [{}, { status: 'active' }] }),
  ...casesOf('/connections', { filters: [{}, { page: 1 }] }),
  ...casesOf('/bulk-retries', { filters: [{}] }),
  ...casesOf('/notifications', { filters: [{}] }),
  {
    name: '/notifications/:id/notices',
    path: ({ notificationId }) => `/notifications/${notificationId}/notices`,
  },
  {
    name: '/notifications/:id/notices deep by cursor',
    path: ({ notificationId, deep }) => withQuery(`/notifications/${notificationId}/notices`, { before: deep.notice }),
  },
]
