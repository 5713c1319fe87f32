import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createReceivingRepositories } from '../../src/archive/receiving-repository.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const config = testConfig()
const database = share(await createTestDatabase())
const { db } = database

describe('requests that read together', () => {
  test('get the same documents as each by itself, also if there is none, or none of its components', async () => {
    const documents = createArchiveDocuments(db)
    const [one, other] = [await createRoutes(db, [{ name: 'archive' }]), await createRoutes(db, [{ name: 'archive' }])]
    const receive = createReceive(db, config)
    // A docId may contain what separates or quotes the elements of an array.
    const docIds = ['D1', 'D"2', String.raw`D\3`, 'D,{4}']
    for (const docId of docIds) await receive(await receivedDocument(one, { data: docId, note: 'a note' }, docId))
    await receive(await receivedDocument(other, { data: 'another' }, 'D1'))
    await receive(await receivedDocument(one, {}, 'EMPTY'))

    const wanted = [...docIds, 'EMPTY', 'UNKNOWN', 'D1'].map((docId) => [one.repositoryId, docId] as const)
    wanted.push([other.repositoryId, 'D1'], [other.repositoryId, 'D"2'])
    const together = await Promise.all(wanted.map(([repositoryId, docId]) => documents.find(repositoryId, docId)))
    const alone = []
    for (const [repositoryId, docId] of wanted) alone.push(await documents.find(repositoryId, docId))
    expect(together).toEqual(alone)
    expect(together.map((document) => document && [document.docId, document.components.map(({ compId }) => compId)])).toEqual([
      ...docIds.map((docId) => [docId, ['data', 'note']]),
      ['EMPTY', []],
      undefined,
      ['D1', ['data', 'note']],
      ['D1', ['data']],
      undefined,
    ])
    expect(together[0]!.components[0]).toEqual({
      compId: 'data',
      contentType: 'text/plain',
      sizeBytes: 2,
      createdAt: expect.any(Date),
      modifiedAt: expect.any(Date),
      content: { id: expect.any(String), store: 'postgres', sizeBytes: 2, appends: 0 },
    })
  })

  test('use a plan that PostgreSQL keeps, also one by one', async () => {
    const limits = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }
    await using single = disposable(openDatabase(limits, 'test'), (each) => each.destroy())
    const documents = createArchiveDocuments(single)
    const { repositoryId } = await createRoutes(db, [{ name: 'archive' }])
    for (let count = 0; count < 20; count += 1) await documents.find(repositoryId, `D${count}`)
    const plans = single('pg_prepared_statements').where({ name: 'find-archive-documents' })
    expect(await plans.first('generic_plans', 'custom_plans')).toEqual({ generic_plans: 15, custom_plans: 5 })
  })

  test('find the same repositories as each by itself, each with what the command needs', async () => {
    const repositories = createReceivingRepositories(db)
    const [one, other] = [await createRoutes(db, [{ name: 'a' }]), await createRoutes(db, [{ name: 'b' }, { name: 'c' }])]
    const find = ({ workspaceSlug }: typeof one, repoId: string, forStoring: boolean) =>
      repositories.find('acme', workspaceSlug, repoId, { forStoring })
    const found = await Promise.all([
      find(one, 'Z1', true),
      find(other, 'Z1', true),
      find(one, 'Z1', false),
      find(one, 'Z2', true),
      find(one, 'Z1', true),
    ])
    expect(found.map((repository) => repository && [repository.id, repository.routes.length])).toEqual([
      [one.repositoryId, 1],
      [other.repositoryId, 2],
      [one.repositoryId, 0],
      undefined,
      [one.repositoryId, 1],
    ])
  })
})
