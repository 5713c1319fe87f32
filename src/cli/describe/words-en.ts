import type { Facts } from './facts.ts'

type Repository = Facts['repositories'][number]
type Connection = Facts['connections'][number]
type Destination = Facts['destinations'][number]
type Enrichment = Facts['enrichments'][number]
type Hold = Facts['holds'][number]

const days = (count: number) => (count === 1 ? '1 day' : `${count} days`)
const listOf = (items: readonly string[]) => items.join(', ')
const scopes = { document: 'the document', business_object: 'the business object', repository: 'the repository' }

/** What the process description says in English: a function for each setting, which gets texts that are safe in Markdown. */
export const en = {
  title: (workspace: string) => `Process description: receipt and delivery of documents, ${workspace}`,
  made: (at: string, version: string) =>
    `Made on ${at} (UTC) by Document Relay ${version} from the settings that applied then. Each sentence follows from a setting, or from how this version works. What the company has arranged around the relay, such as who scans and who approves, is not in it.`,
  none: 'None.',
  system: {
    heading: 'System',
    purpose:
      'Document Relay is a content server by the protocol of SAP ArchiveLink. It receives documents of a source system, stores them, and delivers each to the connected destinations. It acknowledges a document when content, planned deliveries and the record of the request are committed to the database.',
    workspace: (workspace: string, id: string) => `This description is about the workspace ${workspace} of the installation ${id}.`,
    address: (url: string | undefined) => (url === undefined ? 'The public address is not configured.' : `The relay is reached at ${url}.`),
    versions: (relay: string, node: string, database: string) => `Versions: relay ${relay}, Node.js ${node}, PostgreSQL ${database}.`,
  },
  sources: {
    heading: 'Sources',
    addresses: (ranges: string[]) =>
      ranges.length === 0
        ? 'The source system may send from any address.'
        : `The source system may send from these addresses only: ${listOf(ranges)}.`,
    repository: ({ repoId, name, isActive, signatureVerification, codePage, acceptsMcreate }: Repository) =>
      `**${repoId}** (${name}) ${isActive ? 'is active' : 'is inactive and refuses all requests'}. ${
        signatureVerification ? 'Requests without a valid signature of an active certificate are refused.' : 'Signatures are not checked.'
      } Names that are not UTF-8 are read as ${codePage}. Several documents in one request (mCreate) are ${acceptsMcreate ? 'accepted' : 'refused'}.`,
    unconnected: 'No connection leads to a destination: new documents are acknowledged and discarded, neither stored nor delivered.',
    certificate: (subject: string, status: string, validTo: string, fingerprint: string) =>
      `Certificate ${subject}, ${status}, valid until ${validTo}, SHA-256 ${fingerprint}`,
    home: (destination: string, count: number) =>
      `${days(count)} after its delivery to ${destination}, a content leaves the relay, and is read from there.`,
    upstream: (url: string) => `Documents that the relay does not have are fetched from the earlier content server at ${url}, and kept.`,
  },
  storage: {
    heading: 'Storage',
    store: (store: string) => `Contents are stored in ${store}. The SHA-256 of each content is stored with it.`,
    stores: { postgres: 'the database (PostgreSQL)', files: 'a directory', s3: 'a bucket' },
    small: (count: number) => `Contents below ${count} bytes are stored in the database instead.`,
    quota: (bytes: string) => `The workspace stores at most ${bytes} bytes; beyond that, documents are refused.`,
    sealing: (ids: string[]) =>
      `Stored credentials are sealed with AES-256-GCM. Names of the keys, the first of which seals: ${listOf(ids)}. Keys and credentials are not in this description.`,
  },
  connections: {
    heading: 'Connections',
    connection: ({ name, isActive, repositories, destinations, pathTemplate, filter, properties, onResume }: Connection) =>
      `**${name}** ${isActive ? 'forwards' : 'is inactive, and holds'} documents of ${listOf(repositories)} to ${listOf(destinations)}. ${
        filter ? `It forwards those that its filter lets pass: ${filter}.` : 'It forwards every document.'
      } Path: ${pathTemplate}.${properties.length > 0 ? ` Properties: ${listOf(properties)}.` : ''} When it is activated again, ${
        onResume === 'forward' ? 'it forwards what it has held' : 'what it has held stays held'
      }.`,
  },
  destinations: {
    heading: 'Destinations',
    destination: ({ name, type, config }: Destination) =>
      `**${name}** is of the kind ${type}${config.length > 0 ? ` (${listOf(config)})` : ''}.`,
    home: 'Only this destination has the contents that have left the relay for it; they are read from there.',
    retention: ({ retention, legalHold }: Destination) =>
      [
        ...(retention
          ? [
              `The target must keep each document ${retention.until ? `until ${retention.until}` : ''}${retention.until && retention.days !== undefined ? ', or else ' : ''}${retention.days === undefined ? '' : `for ${days(retention.days)} from its receipt`} (mode ${retention.mode}).`,
            ]
          : []),
        ...(legalHold ? ['Each document is put on legal hold there.'] : []),
      ].join(' '),
  },
  enrichments: {
    heading: 'Business data',
    bridge: (url: string, functions: string[]) =>
      `The relay may call these functions of the source system at ${url}: ${listOf(functions)}.`,
    noBridge: 'The relay calls no functions of the source system.',
    enrichment: ({ name, isActive, repositories, waitSeconds, lateDays, steps }: Enrichment) =>
      `**${name}** ${isActive ? 'fetches' : 'is inactive, and would fetch'} business data for ${listOf(repositories)} in these steps: ${listOf(steps)}. Deliveries wait for it for at most ${waitSeconds} seconds; data that is found within ${days(lateDays)} is brought to the copies.`,
  },
  delivery: {
    heading: 'Delivery and failures',
    retries: (retries: number, ttlSeconds: number, first: number, longest: number) =>
      `A delivery that fails is repeated at most ${retries} times within ${ttlSeconds} seconds, first after ${first} seconds and never later than ${longest} seconds after the last attempt. Then it is failed, and stays in the list of failures until a person retries or acknowledges it.`,
    receipt: 'Each delivery keeps a receipt: the digest of what was sent, the time, and what the target calls it.',
    notification: (name: string, events: string[], destination: string) =>
      `The notification **${name}** announces ${listOf(events)} at ${destination}.`,
  },
  retention: {
    heading: 'Retention and deletion',
    content: (count: number | null) =>
      count === null
        ? 'The relay removes no content because of its age.'
        : `The content of a document with which nothing is left to be done is removed ${days(count)} after its receipt.`,
    homes: 'A content that has left the relay is kept by its destination alone, which decides for how long.',
    documents: (count: number) =>
      count === 0
        ? 'The records of documents and deliveries are kept indefinitely.'
        : `The records of a document with which nothing is left to be done, and of its deliveries, are removed ${days(count)} after its receipt, if it has no content any more.`,
    attempts: (count: number) => `Records of attempts are removed after ${days(count)}. Receipts stay.`,
    requests: (requests: number, bodies: number) =>
      `Captured requests are removed after ${days(requests)}, and their bodies after ${days(bodies)}.`,
    events: (count: number) =>
      count === 0 ? 'No events are written for other programs.' : `Events for other programs are kept for ${days(count)}.`,
    erasure: 'Administrators can erase the content of a document. The audit log records it.',
    source: 'A deletion by the source system ends its reading. The relay keeps the content as said above, and copies at destinations stay.',
  },
  holds: {
    heading: 'Legal holds',
    rule: 'While a hold is set, neither retention nor an erasure nor the source system removes what it applies to.',
    more: (count: number) => `Earlier holds that are not listed here: ${count}.`,
    hold: ({ scope, subject, reason, setAt, setBy }: Hold) =>
      `Since ${setAt}, ${scopes[scope]} ${subject} has been on hold: ${reason} (set by ${setBy ?? 'an operator on the command line'}).`,
  },
  proof: {
    heading: 'Records and proof',
    audit: (count: number | null) =>
      `The audit log records each change of the configuration and of a document by a person, in the transaction of the change. Its entries are kept ${count === null ? 'indefinitely' : `for ${days(count)}`}.`,
    manifest: (fingerprint: string | undefined) =>
      `For each day (UTC), a signed manifest lists the documents that were received, and where they are; each names the digest of the one before. ${
        fingerprint === undefined
          ? 'No manifest has been made yet, so there is no key.'
          : `SHA-256 of the certificate that verifies it: ${fingerprint}.`
      }`,
    stamp: (url: string | undefined) =>
      url === undefined ? 'Manifests have no time stamp.' : `Each manifest gets a time stamp (RFC 3161) of ${url}.`,
    copies: (destinations: string[]) =>
      destinations.length === 0
        ? 'No destination gets the manifests.'
        : `These destinations get a copy of each manifest: ${listOf(destinations)}.`,
  },
  access: {
    heading: 'Access',
    levels: 'Viewers read, members also change the configuration and retry, administrators also delete, erase, set holds and manage keys.',
    signIn: (issuer: string | undefined): string =>
      issuer === undefined
        ? 'People sign in with API keys: no OpenID provider is configured.'
        : `People sign in through the OpenID provider ${issuer}, or with API keys.`,
    people: (claim: string, value: string, level: string) => `People whose claim ${claim} has the value **${value}**, level ${level}`,
    key: (name: string, level: string, expiresAt: string | undefined) =>
      `API key **${name}**, level ${level}, ${expiresAt === undefined ? 'without end' : `until ${expiresAt}`}`,
  },
  operation: {
    heading: 'Backup and restore',
    backup: 'To be restored, database and content store have to be backed up together, as the documentation of the relay says (backup.md).',
    restoreTest: (day: string | undefined) =>
      day === undefined ? 'Last restore test: not recorded.' : `Last restore test, as the operator has stated: ${day}.`,
  },
}

export type Words = typeof en
