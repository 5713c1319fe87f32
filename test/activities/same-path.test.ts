import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { createAppends } from '../../src/db/appends.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import type { AttemptOutcome } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startSshd, type Sshd } from '../support/sshd.ts'

// Documents of one name go to one path, one after the other: whatever comes in between, the newest bytes lie there at the end.

const config = testConfig({ RELAY_APPEND_QUIET_MS: '0' })
const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
const policy = { maxRetries: 5, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }

let database: TestDatabase
let server: Sshd
let web: HttpTarget

beforeAll(async () => {
  database = await createTestDatabase()
  server = await startSshd()
  web = await startHttpTarget()
})
afterAll(async () => {
  await web.stop()
  await server.stop()
  await outbound.close()
  await database.drop()
})

const files = () => ({ host: '127.0.0.1', port: server.port, host_key_sha256: server.hostKeyFingerprint })

/** A docId whose documents go to one destination. Attempts are made when the test says so, and wait for `gate` before they read the bytes. */
const arrange = async (connector: 'sftp' | 'webhook' = 'sftp') => {
  const { db } = database
  const plan = connector === 'sftp' ? { connector, config: files() } : { connector, config: { url: web.origin } }
  const wiring = await createWiring(db, [{ name: 'target', ...plan }])
  const destinationId = wiring.destinations['target']!
  const store = createPostgresStore(db)
  const docId = `DOC${wiring.workspaceSlug}`
  const activitiesWith = (contents: ContentStore) =>
    deliveryActivities({
      db,
      contents: { postgres: contents, s3: undefined },
      openCredentials: () => (connector === 'sftp' ? { username: server.username, private_key: server.privateKey } : {}),
      outbound,
      config,
    })
  const attempt = (documentId: string, contents: ContentStore = store): Promise<AttemptOutcome> =>
    new MockActivityEnvironment().run(activitiesWith(contents).attemptDelivery, {
      documentId,
      destinationId,
      policy,
      failures: 0,
      remainingMs: policy.ttlMs,
      attemptTimeoutMs: 20_000,
    })
  return {
    db,
    create: async (text: string) => {
      const { messages } = await createReceipts(db, config).receive(await receiptOf(wiring, { data: text }, docId))
      return messages[0]!.documentId
    },
    update: async (text: string) => {
      const { messages } = await createReceipts(db, config).update({ ...(await receiptOf(wiring, { data: text }, docId)), whole: false })
      return messages[0]!.documentId
    },
    append: async (documentId: string, whole: string) => {
      const { content_id: basedOn } = await db('documents').where({ id: documentId }).first('content_id')
      const { source, components, receivedAt } = await receiptOf(wiring, { data: whole }, docId)
      await createAppends(db, config).append({ source, docId, compId: 'data', basedOn, content: components[0]!.content!, receivedAt })
    },
    delete: (documentId: string) =>
      db.raw(
        `with gone as (update documents set superseded_at = now() where id = ? returning archive_document_id)
         update archive_documents set deleted_at = now() from gone where id = archive_document_id`,
        [documentId],
      ),
    attempt,
    /** An attempt that has begun, and sends once it is let go. */
    slowAttempt: async (documentId: string) => {
      const gate = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      const outcome = attempt(documentId, {
        ...store,
        read: (...wanted) => {
          reached.resolve()
          return store.read(...wanted).compose(async function* (chunks: AsyncIterable<Buffer>) {
            await gate.promise
            yield* chunks
          })
        },
      } as ContentStore)
      await reached.promise
      return {
        finish: () => {
          gate.resolve()
          return outcome
        },
      }
    },
    down: (isDown: boolean) =>
      db('destinations')
        .where({ id: destinationId })
        .update({ config: JSON.stringify(isDown ? { ...files(), port: 1 } : files()) }),
    arrived: () => readFile(join(server.directory, wiring.repoId, docId, 'data'), 'utf8'),
    outcomes: async (documentId: string) => {
      const rows = await db('delivery_attempts')
        .where({ document_id: documentId })
        .orderBy('number')
        .select<{ outcome: string }[]>('outcome')
      return rows.map(({ outcome }) => outcome)
    },
    statusOf: async (documentId: string) => (await db('documents').where({ id: documentId }).first('status'))?.status as string,
    waiting: (documentId: string) => db('outbox').where({ key: `document/${documentId}@2` }),
  }
}

describe('a document that was superseded before it was delivered', () => {
  it('is sent all the same where it comes first', async () => {
    const { create, update, attempt, arrived } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('old')
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('new')
  })

  it('is not sent once the newer one lies at its path: the attempt says so, and the delivery is done', async () => {
    const { create, update, attempt, arrived, down, outcomes, statusOf } = await arrange()
    const older = await create('old')
    await down(true)
    expect(await attempt(older)).toMatchObject({ status: 'retrying' })
    await down(false)
    const newer = await update('new')
    await attempt(newer)
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('new')
    expect(await outcomes(older)).toEqual(['retryable', 'superseded'])
    expect([await statusOf(older), await statusOf(newer)]).toEqual(['delivered', 'delivered'])
  })

  it('nor where its docId was deleted and created again', async () => {
    const scene = await arrange()
    const older = await scene.create('old')
    await scene.delete(older)
    const newer = await scene.create('new')
    await scene.attempt(newer)
    await scene.attempt(older)
    expect(await scene.arrived()).toBe('new')
  })

  it('is sent in any case where each delivery is a message of its own', async () => {
    const { create, update, attempt } = await arrange('webhook')
    const older = await create('old')
    await attempt(await update('new'))
    await attempt(older)
    expect(web.arrivals.map(({ body }) => body.toString())).toEqual(['new', 'old'])
  })
})

describe('two attempts to one path at the same time', () => {
  it('end with the newer document though the older one arrives last: the newer one is relayed again', async () => {
    const { create, update, attempt, slowAttempt, arrived, statusOf, waiting } = await arrange()
    const older = await create('old')
    const late = await slowAttempt(older)
    const newer = await update('new')
    await attempt(newer)
    expect(await late.finish()).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('old')

    expect(await statusOf(newer)).toBe('pending')
    expect(await waiting(newer)).toMatchObject([
      { message: { kind: 'document', documentId: newer, revision: 2, policy: expect.any(Object) } },
    ])
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('new')
  })

  it('end with the newer document though its own attempt began before the older one arrived', async () => {
    const { create, update, attempt, slowAttempt, arrived, statusOf, outcomes, waiting } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    const early = await slowAttempt(newer)
    await attempt(older)
    expect(await early.finish()).toMatchObject({ status: 'retrying' })
    expect(await statusOf(newer)).toBe('retrying')
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('new')
    expect(await outcomes(newer)).toEqual(['delivered', 'delivered'])
    expect(await waiting(newer)).toEqual([])
  })

  it('do it again though the worker is lost between record and repair', async () => {
    const { db, create, update, attempt, statusOf } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    await attempt(newer)
    await db('deliveries').where({ document_id: older }).update({ status: 'delivered' })
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await statusOf(newer)).toBe('pending')
  })
})

describe('a document that is appended to after it was delivered', () => {
  it('goes to the same path again', async () => {
    const { db, create, append, attempt, arrived } = await arrange()
    const documentId = await create('one')
    await attempt(documentId)
    await append(documentId, 'one two')
    expect(await attempt(documentId)).toEqual({ status: 'delivered' })
    expect(await arrived()).toBe('one two')
    expect(await db('deliveries').where({ document_id: documentId }).first('location')).toEqual({
      location: expect.stringMatching(/^sftp:\/\/127\.0\.0\.1/),
    })
  })
})
