import { z } from 'zod'
import { notFound } from '../base/refusals.ts'
import type { Database } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
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
})

export type Manifest = CamelCasedOutput<typeof manifestFields> & {
  /** The day, `2026-11-28`. */
  id: string
}

/** The parts of a manifest: a file, and what was said about it. */
export interface ManifestParts extends Manifest {
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

export const createManifests = (db: Database) => ({
  /** Lists the manifests of a workspace, newest first. */
  list: async (workspaceId: string, { page, perPage }: PageRequest): Promise<Page<Manifest>> => {
    const own = () => db('manifests').where({ workspace_id: workspaceId })
    const [items, counted] = await Promise.all([
      own()
        .select<Manifest[]>(columns(db))
        .orderBy('day', 'desc')
        .limit(perPage)
        .offset((page - 1) * perPage),
      own().count({ total: '*' }).first() as unknown as Promise<{ total: number }>,
    ])
    return { items, total: counted.total }
  },

  /** @throws `AppError` 404 if there is no manifest of the day */
  find: async (workspaceId: string, day: string): Promise<ManifestParts> => {
    const found = await db('manifests')
      .join('contents', 'contents.id', 'content_id')
      .where({ 'manifests.workspace_id': workspaceId, day })
      .first<(Manifest & { contentId: string; store: ContentStoreKind } & Omit<ManifestParts, 'content'>) | undefined>([
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
