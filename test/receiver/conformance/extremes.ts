import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { openDatabase } from '../../../src/db/database.ts'
import { databaseConfig } from '../../support/database.ts'
import { partsOf } from '../answers.ts'
import { lockTimeoutMs, outcomeOf, put, type Step } from './story.ts'

const MiB = 1024 * 1024
const largeMiB = 100

/** Returns a different chunk for each MiB, so that a missing or misplaced chunk changes the hash. */
const chunk = (number: number) => Buffer.alloc(MiB, `${number} of ${largeMiB}, `)

export const extremes: Step[] = [
  [
    '32: a compId may be a file name',
    async ({ ask }) => {
      const names = ['my%20file.v1.tar.gz', 'B%C3%BCro.pdf', 'a%2Bb', 'a+b']
      for (const [index, compId] of names.entries()) {
        const docId = `N${index}`
        expect(await outcomeOf(ask('create', { docId, compId, ...put(compId) }))).toEqual([201])
        const [component] = partsOf(await ask('info', { docId }))
        expect(component?.headers['x-compid']).toBe(Buffer.from(decodeURIComponent(compId)).toString('latin1'))
        expect(await ask('get', { docId, compId })).toMatchObject({ status: 200, body: Buffer.from(compId) })
      }
    },
  ],
  [
    '33: a component may be empty or large',
    async ({ ask, url, isSigned, scene, path }) => {
      for (const [docId, bytes] of [
        ['EMPTY', Buffer.alloc(0)],
        ['MEDIUM', randomBytes(MiB)],
      ] as const) {
        expect(await outcomeOf(ask('create', { docId, compId: 'data', ...put(bytes) }))).toEqual([201])
        const answer = await ask('get', { docId })
        expect([answer.status, answer.headers['content-length'], answer.body.equals(bytes)]).toEqual([200, String(bytes.length), true])
      }
      // The size is independent of the signature, so the large component is sent in one run only.
      if (isSigned) return

      const sent = createHash('sha256')
      async function* chunks() {
        for (let number = 0; number < largeMiB; number += 1) {
          const bytes = chunk(number)
          sent.update(bytes)
          yield bytes
        }
      }
      const headers = { 'content-type': 'application/octet-stream', 'content-length': String(largeMiB * MiB) }
      const created = ask('create', { docId: 'LARGE', compId: 'data', method: 'PUT', headers, body: Readable.from(chunks()) })
      expect(await outcomeOf(created)).toEqual([201])

      const answer = await fetch(`${scene.api.baseUrl}${path}?${await url('get', { docId: 'LARGE' })}`)
      expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(largeMiB * MiB)])
      const received = createHash('sha256')
      for await (const bytes of answer.body!) received.update(bytes)
      expect(received.digest('hex')).toBe(sent.digest('hex'))
    },
  ],
  [
    '34: a locked document and missing content are answered with 409',
    async ({ scene, workspaceId, ask }) => {
      const create = { docId: 'L1', compId: 'data', ...put('before') }
      expect(await outcomeOf(ask('create', create))).toEqual([201])
      const other = openDatabase(databaseConfig(scene.database.url), 'test holder')
      const holder = await other.transaction()
      try {
        await holder('archive_documents').where({ workspace_id: workspaceId, doc_id: 'L1' }).forUpdate()
        const began = performance.now()
        expect(await outcomeOf(ask('update', { docId: 'L1', compId: 'data', ...put('after') }))).toEqual([409, 'document_locked'])
        expect(performance.now() - began).toBeGreaterThan(lockTimeoutMs - 50)
        expect(await outcomeOf(ask('update', { ...create, compId: 'note' }))).toEqual([409, 'document_locked'])
        expect(await outcomeOf(ask('append', create))).toEqual([409, 'document_locked'])
        expect(await outcomeOf(ask('delete', { docId: 'L1' }))).toEqual([409, 'document_locked'])
        expect(String((await ask('get', { docId: 'L1' })).body)).toBe('before')
      } finally {
        await holder.rollback()
        await other.destroy()
      }
      expect(await outcomeOf(ask('update', { docId: 'L1', compId: 'data', ...put('after') }))).toEqual([200])

      await scene.db('documents').where({ workspace_id: workspaceId, doc_id: 'L1' }).update({ content_id: null })
      for (const command of ['get', 'docGet']) {
        expect(await outcomeOf(ask(command, { docId: 'L1' }))).toEqual([409, 'component_offline'])
      }
    },
  ],
]
