import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { receiverUseCases } from '../../src/app/use-cases.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import type { ContentStore } from '../../src/content/store.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { startSshd } from '../support/sshd.ts'
import { documentsToCome } from '../support/starts.ts'

// Documents with the same name are delivered to the same path. Whatever the order of attempts, the path holds the newest document at the end.

const config = testConfig({ RELAY_APPEND_QUIET_MS: '0' })
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const policy = { maxRetries: 5, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }

const database = share(await createTestDatabase())
const server = share(disposable(await startSshd(), (each) => each.stop()))
const web = share(await startHttpTarget())

const sftpConfig = () => ({ host: '127.0.0.1', port: server.port, host_key_sha256: server.hostKeyFingerprint })

/** Arranges a docId with one destination. Attempts run only when the test calls them. */
const arrange = async (connector: 'sftp' | 'webhook' = 'sftp') => {
  const { db } = database
  const plan = connector === 'sftp' ? { connector, config: sftpConfig() } : { connector, config: { url: web.origin } }
  const routes = await createRoutes(db, [{ name: 'target', ...plan }])
  const destinationId = routes.destinations['target']!
  const store = createPostgresStore(db)
  const docId = `DOC${routes.workspaceSlug}`
  const { receive, update, append, archiveDocuments } = receiverUseCases(db, config)
  const activitiesWith = (contents: ContentStore) =>
    attemptActivities({
      db,
      contents: createSegmentedStores(db, { postgres: contents }),
      openCredentials: () => (connector === 'sftp' ? { username: server.username, private_key: server.privateKey } : {}),
      outbound,
      config,
    })
  const attempt = (documentId: string, contents: ContentStore = store): Promise<AttemptOutcome> =>
    // Every retry is due, as after a reset.
    createActivityEnvironment({ currentAttemptScheduledTimestampMs: Date.now() + 1 }).run(activitiesWith(contents).attemptDelivery, {
      documentId,
      destinationId,
      policy,
      round: 'first',
      attemptTimeoutMs: 120_000,
      workspace: 'acme/invoices',
    })
  return {
    db,
    create: async (text: string) => {
      const { messages } = await receive(await receivedDocument(routes, { data: text }, docId))
      return messages[0]!.input.documentId
    },
    update: async (text: string) => {
      const { messages } = await update({ ...(await receivedDocument(routes, { data: text }, docId)), whole: false })
      return messages[0]!.input.documentId
    },
    append: async (text: string) => {
      const { repository, components, receivedAt } = await receivedDocument(routes, { data: text }, docId)
      const basedOn = (await archiveDocuments.find(repository.id, docId))!.components[0]!.content!
      const segment = { startByte: basedOn.sizeBytes, merged: [], content: components[0]!.content!, isWhole: false }
      await append({ repository, docId, compId: 'data', basedOn, segment, receivedAt, capture: undefined })
    },
    delete: (documentId: string) =>
      db.raw(
        `with gone as (update documents set superseded_at = now() where id = ? returning archive_document_id)
         update archive_documents set deleted_at = now() from gone where id = archive_document_id`,
        [documentId],
      ),
    attempt,
    /** Starts an attempt that waits before it sends its content. @returns a function that lets it continue */
    startAttempt: async (documentId: string) => {
      const gate = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      const outcome = attempt(documentId, {
        ...store,
        read: (...range) => {
          reached.resolve()
          return store.read(...range).compose(async function* (chunks: AsyncIterable<Buffer>) {
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
    setDown: (isDown: boolean) =>
      db('destinations')
        .where({ id: destinationId })
        .update({ config: JSON.stringify(isDown ? { ...sftpConfig(), port: 1 } : sftpConfig()) }),
    readTarget: () => readFile(join(server.directory, routes.repoId, docId, 'data'), 'utf8'),
    outcomes: async (documentId: string) => {
      const rows = await db('delivery_attempts')
        .where({ document_id: documentId })
        .orderBy('number')
        .select<{ outcome: string }[]>('outcome')
      return rows.map(({ outcome }) => outcome)
    },
    statusOf: async (documentId: string) => (await db('documents').where({ id: documentId }).first('status'))?.status as string,
    redeliveries: async (documentId: string) =>
      (await documentsToCome(db, routes.workspaceSlug)).filter(({ input }) => input.documentId === documentId && input.revision === 2),
  }
}

describe('a document that was superseded before it was delivered', () => {
  test('is sent if no newer document was delivered before', async () => {
    const { create, update, attempt, readTarget } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('old')
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('new')
  })

  test('is not sent once the newer document is at its path: the outcome is superseded, and the delivery is delivered', async () => {
    const { create, update, attempt, readTarget, setDown, outcomes, statusOf } = await arrange()
    const older = await create('old')
    await setDown(true)
    expect(await attempt(older)).toMatchObject({ status: 'retrying' })
    await setDown(false)
    const newer = await update('new')
    await attempt(newer)
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('new')
    expect(await outcomes(older)).toEqual(['retryable', 'superseded'])
    expect([await statusOf(older), await statusOf(newer)]).toEqual(['delivered', 'delivered'])
  })

  test('is not sent if its docId was deleted, created again and delivered', async () => {
    const scene = await arrange()
    const older = await scene.create('old')
    await scene.delete(older)
    const newer = await scene.create('new')
    await scene.attempt(newer)
    await scene.attempt(older)
    expect(await scene.readTarget()).toBe('new')
  })

  test('is always sent if the connector delivers each document as a separate message', async () => {
    const { create, update, attempt } = await arrange('webhook')
    const older = await create('old')
    await attempt(await update('new'))
    await attempt(older)
    expect(web.arrivals.map(({ body }) => body.toString())).toEqual(['new', 'old'])
  })
})

describe('two attempts to one path at the same time', () => {
  test('end with the newer document even if the older one is stored last: the newer one is delivered again', async () => {
    const { create, update, attempt, startAttempt, readTarget, statusOf, redeliveries } = await arrange()
    const older = await create('old')
    const late = await startAttempt(older)
    const newer = await update('new')
    await attempt(newer)
    expect(await late.finish()).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('old')

    expect(await statusOf(newer)).toBe('pending')
    expect(await redeliveries(newer)).toMatchObject([
      { kind: 'startDocument', input: { documentId: newer, revision: 2, policy: expect.any(Object) } },
    ])
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('new')
  })

  test('end with the newer document even if its attempt started before the older one was stored', async () => {
    const { create, update, attempt, startAttempt, readTarget, statusOf, outcomes, redeliveries } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    const early = await startAttempt(newer)
    await attempt(older)
    expect(await early.finish()).toMatchObject({ status: 'retrying' })
    expect(await statusOf(newer)).toBe('retrying')
    expect(await attempt(newer)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('new')
    expect(await outcomes(newer)).toEqual(['delivered', 'delivered'])
    expect(await redeliveries(newer)).toEqual([])
  })

  test('end with the newer document even if the worker is lost after it recorded the older delivery', async () => {
    const { db, create, update, attempt, statusOf } = await arrange()
    const older = await create('old')
    const newer = await update('new')
    await attempt(newer)
    await db('deliveries').where({ document_id: older }).update({ status: 'delivered', location: 'old' })
    expect(await attempt(older)).toEqual({ status: 'delivered' })
    expect(await statusOf(newer)).toBe('pending')
  })
})

describe('a document that is appended to after it was delivered', () => {
  test('is delivered to the same path again', async () => {
    const { db, create, append, attempt, readTarget } = await arrange()
    const documentId = await create('one')
    await attempt(documentId)
    await append(' two')
    expect(await attempt(documentId)).toEqual({ status: 'delivered' })
    expect(await readTarget()).toBe('one two')
    expect(await db('deliveries').where({ document_id: documentId }).first('location')).toEqual({
      location: expect.stringMatching(/^sftp:\/\/127\.0\.0\.1/),
    })
  })
})
