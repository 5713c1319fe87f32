import { readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { describeVerified, verifyAllContents } from '../../src/cli/verify-contents.ts'
import { createStores } from '../../src/content/configured-stores.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'

/** Creates a database, and a directory of the contents. */
const createArchive = async () => {
  const database = await createTestDatabase()
  const { db } = database
  const folder = await createFolder()
  const { path: directory } = folder
  const configOf = (variables: Record<string, string> = { CONTENT_DIR: directory, CONTENT_DIR_MIN_BYTES: '10' }) =>
    testConfig({ DATABASE_URL: database.url, ...variables })
  return {
    db,
    configOf,
    verify: (isRead = false, config = configOf()) => verifyAllContents(config, { isRead }),
    /** Stores documents with these contents. Contents of 10 bytes and more are files. @returns the ids of the contents, by docId */
    receive: async (contents: Record<string, string>) => {
      const routes = await createRoutes(db, [{ name: 'archive' }])
      const { files } = await createStores(db, configOf())
      for (const [docId, text] of Object.entries(contents)) {
        const { components, ...received } = await receivedDocument(routes, { data: text }, docId)
        const content = await files!.write(routes.workspaceId, Readable.from([Buffer.from(text)]))
        await createReceive(db, testConfig())({ ...received, components: components.map((component) => ({ ...component, content })) })
      }
      const rows: { docId: string; contentId: string }[] = await db('documents').select('doc_id as docId', 'content_id as contentId')
      return Object.fromEntries(rows.map(({ docId, contentId }) => [docId, contentId]))
    },
    pathOf: async (contentId: string) =>
      join(
        directory,
        (await readdir(directory, { recursive: true })).find((path) => path.endsWith(contentId))!,
      ),
    [Symbol.asyncDispose]: async () => {
      await database.drop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('complete contents are counted, in PostgreSQL and in files, and those without an owner are not', async () => {
  await using archive = await createArchive()
  const { db, verify, receive } = archive
  expect(describeVerified(await verify())).toEqual(['Checked 0 contents with 0 bytes: none is damaged.'])
  await receive({ SMALL: 'small', LARGE: 'a larger content', EMPTY: '' })
  await db('contents').insert({ id: newId(), workspace_id: newId(), store: 'files' })
  for (const isRead of [false, true]) expect(await verify(isRead)).toEqual({ contents: 3, bytes: 21, damaged: 0, documents: [] })
})

test('a document whose bytes are missing, shorter or longer is named', async () => {
  await using archive = await createArchive()
  const { db, verify, receive, pathOf } = archive
  const { GONE, SHORT, LONG, CHUNK } = await receive({
    GONE: 'gone: 16 bytes..',
    SHORT: 'short: 16 bytes.',
    LONG: 'long: 16 bytes..',
    CHUNK: 'chunk',
    WHOLE: 'whole: 16 bytes.',
  })
  await rm(await pathOf(GONE!))
  await truncate(await pathOf(SHORT!), 5)
  await writeFile(await pathOf(LONG!), 'appended', { flag: 'a' })
  await db('content_chunks').where({ content_id: CHUNK }).delete()
  const { documents, ...counts } = await verify()
  expect(counts).toEqual({ contents: 5, bytes: 69, damaged: 4 })
  expect(Object.fromEntries(documents.map(({ doc_id: docId, store, problem }) => [docId, `${store}: ${problem}`]))).toEqual({
    GONE: 'files: missing',
    SHORT: 'files: 5 of 16 bytes are stored',
    LONG: 'files: 24 of 16 bytes are stored',
    CHUNK: 'postgres: missing',
  })
  const lines = describeVerified(await verify())
  expect(lines).toContainEqual(expect.stringMatching(/^acme\/\S+ Z1 GONE data \(document \w{26}, content \w{26} in files\): missing$/))
  expect(lines.at(-1)).toBe('Checked 5 contents with 69 bytes: 4 damaged.')
})

test('changed bytes of the same number are found if every byte is read', async () => {
  await using archive = await createArchive()
  const { verify, receive, pathOf } = archive
  const { CHANGED } = await receive({ CHANGED: 'before: 16 bytes', WHOLE: 'whole: 16 bytes.' })
  await writeFile(await pathOf(CHANGED!), 'after: 16 bytes.')
  expect(await verify(false)).toMatchObject({ damaged: 0 })
  expect(await verify(true)).toMatchObject({
    damaged: 1,
    documents: [{ doc_id: 'CHANGED', problem: 'the stored bytes were changed: their SHA-256 is another one' }],
  })
})

test('a segment of a content that was extended is checked', async () => {
  await using archive = await createArchive()
  const { db, verify, receive } = archive
  const { DOC } = await receive({ DOC: 'the beginning of it' })
  const segment = newId()
  const { workspace_id: workspaceId } = await db('contents').where({ id: DOC }).first('workspace_id')
  await db('contents').insert({ id: segment, workspace_id: workspaceId, store: 'files', size_bytes: 7, owned_at: new Date() })
  await db('content_segments').insert({ content_id: DOC, append: 1, start_byte: 19, segment_id: segment, workspace_id: workspaceId })
  expect(await verify()).toMatchObject({ contents: 2, bytes: 26, damaged: 1, documents: [{ doc_id: 'DOC', content_id: segment }] })
})

test('without the directory in the configuration, nothing is reported as damaged', async () => {
  await using archive = await createArchive()
  const { configOf, verify, receive } = archive
  await receive({ SMALL: 'small', LARGE: 'a larger content' })
  await expect(verify(false, configOf({}))).rejects.toThrow(
    'Some contents are in the files store, which is not configured. Set CONTENT_DIR and CONTENT_S3_BUCKET as for the relay.',
  )
})
