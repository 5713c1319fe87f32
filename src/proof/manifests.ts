import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import type { Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { columnsAs, type CamelCasedOutput } from '../domain/casing.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import { timestamp } from '../domain/date-range.ts'

export const manifestFields = z.object({
  sha256: z.string().describe('SHA-256 of the file in hex. The manifest of the next day names it.'),
  size_bytes: z.int(),
  documents: z.int().describe('Documents that were received on that day.'),
  receipts: z.int().describe('Receipts of that day for documents that were received before.'),
  is_stamped: z.boolean().describe('Whether there is a time stamp.'),
  stamp_error: z.string().nullable().describe('Why there is no time stamp yet. Null if none was configured, or it was not asked for yet.'),
  made_at: timestamp,
  copies: z
    .array(
      z
        .object({
          destination_id: z.string(),
          destination_name: z.string(),
          copied_at: timestamp,
          is_stamped: z.boolean().describe('Whether it has got the time stamp as well.'),
        })
        .meta({ id: 'ManifestCopy' }),
    )
    .describe('The destinations of `PROOF_DESTINATIONS` that have got it. One that fails is asked again every 15 minutes.'),
})

export type Manifest = CamelCasedOutput<typeof manifestFields> & {
  /** The day, `2026-11-28`. */
  id: string
}

/** The parts of a manifest: a file, and what was said about it. */
export interface ManifestParts extends Omit<Manifest, 'copies'> {
  content: { id: string; sizeBytes: number; store: ContentStoreKind }
  signature: Buffer
  /** PEM. */
  certificate: string
  stamp: Buffer | null
}

const columns = (db: Database) => [
  db.raw(`day::text as id, encode(manifests.sha256, 'hex') as sha256, stamp is not null as "isStamped"`),
  'manifests.size_bytes as sizeBytes',
  'documents',
  'receipts',
  'stamp_error as stampError',
  'made_at as madeAt',
]

/** Adds where the manifests were brought. */
const withCopies = async <Row extends { id: string }>(db: Database, workspaceId: string, rows: Row[]) => {
  const copies: (Manifest['copies'][number] & { day: string })[] = await db('manifest_copies')
    .join('destinations', 'destinations.id', 'destination_id')
    .where({ 'manifest_copies.workspace_id': workspaceId })
    .whereIn(
      'day',
      rows.map(({ id }) => id),
    )
    .orderBy(['day', 'destination_id'])
    .select([db.raw('day::text'), ...columnsAs('destination_id, copied_at'), 'name as destinationName', 'has_stamp as isStamped'])
  const byDay = Map.groupBy(copies, ({ day }) => day)
  return rows.map((row) => ({ ...row, copies: byDay.get(row.id) ?? [] }))
}

export const createManifests = (db: Database) => ({
  /** Lists the manifests of a workspace, newest first. */
  list: async (workspaceId: string, { page, perPage }: PageRequest): Promise<Page<Manifest>> => {
    const own = () => db('manifests').where({ workspace_id: workspaceId })
    const [items, counted] = await Promise.all([
      own()
        .select<Omit<Manifest, 'copies'>[]>(columns(db))
        .orderBy('day', 'desc')
        .limit(perPage)
        .offset((page - 1) * perPage),
      own().count({ total: '*' }).first() as unknown as Promise<{ total: number }>,
    ])
    return { items: await withCopies(db, workspaceId, items), total: counted.total }
  },

  /** @throws `AppError` 404 if there is no manifest of the day */
  find: async (workspaceId: string, day: string): Promise<ManifestParts> => {
    const found = await db('manifests')
      .join('contents', 'contents.id', 'content_id')
      .where({ 'manifests.workspace_id': workspaceId, day })
      .first<(Omit<Manifest, 'copies'> & { contentId: string; store: ContentStoreKind } & Omit<ManifestParts, 'content'>) | undefined>([
        ...columns(db),
        'content_id as contentId',
        'store',
        'signature',
        'certificate',
        'stamp',
      ])
    if (!found) throw notFound()
    const { contentId, store, ...parts } = found
    return { ...parts, content: { id: contentId, sizeBytes: parts.sizeBytes, store } }
  },
})

export type Manifests = ReturnType<typeof createManifests>

/** A part of a manifest, as it is handed out. */
export interface ManifestPart {
  fileName: string
  contentType: string
  sizeBytes: number
  /** Hex. */
  sha256: string
  open(range?: { start?: number; end?: number }): Readable
}

/** Returns the parts of a manifest: the file, its signature, its certificate, and its time stamp if there is one. @throws AppError 503 */
export const partsOf = ({ id, content, sha256, signature, certificate, stamp }: ManifestParts, contents: Stores): ManifestPart[] => {
  const store = contents[content.store]
  if (!store)
    throw new AppError('unavailable', `The manifest is in the ${content.store} store, which this process is not configured to use.`)
  const small = (end: string, contentType: string, bytes: Buffer): ManifestPart => ({
    fileName: `${id}.${end}`,
    contentType,
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    open: ({ start = 0 } = {}) => Readable.from([bytes.subarray(start)], { objectMode: false }),
  })
  const { sizeBytes } = content
  return [
    { fileName: `${id}.jsonl`, contentType: 'application/jsonl', sizeBytes, sha256, open: (range) => store.read(content, range) },
    small('p7s', 'application/pkcs7-signature', signature),
    small('pem', 'application/x-pem-file', Buffer.from(certificate)),
    ...(stamp ? [small('tsr', 'application/timestamp-reply', stamp)] : []),
  ]
}
