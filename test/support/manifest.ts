import { createHash } from 'node:crypto'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'

let days = 0

/** Inserts the manifest of a day that no other one has. @returns the day */
export const insertManifest = async (db: Database, workspaceId: string): Promise<string> => {
  days += 1
  const day = new Date(Date.UTC(2001, 0, days)).toISOString().slice(0, 10)
  const [contentId, data] = [newId(), Buffer.from('{"type":"end"}\n')]
  const sha256 = createHash('sha256').update(data).digest()
  const content = { workspace_id: workspaceId, size_bytes: data.length, sha256 }
  await db('contents').insert({ id: contentId, ...content, store: 'postgres', owned_at: new Date() })
  await db('content_chunks').insert({ content_id: contentId, seq: 0, data })
  await db('manifests').insert({
    ...content,
    day,
    content_id: contentId,
    documents: 0,
    receipts: 0,
    signature: Buffer.from('x'),
    certificate: 'x',
    is_stamp_due: false,
    stamp: Buffer.from('x'),
  })
  return day
}
