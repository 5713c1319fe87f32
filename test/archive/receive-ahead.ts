// Creates a document as a process does whose clock is an hour ahead, and prints its id. Arguments: workspace id, slug, docId.
const { now } = Date
Date.now = () => now() + 3_600_000

const { createReceive } = await import('../../src/archive/receive.ts')
const { createReceivingRepositories } = await import('../../src/archive/receiving-repository.ts')
const { openDatabase } = await import('../../src/db/database.ts')
const { databaseConfig } = await import('../support/database.ts')
const { receivedDocument, testConfig } = await import('../support/factories.ts')

const [workspaceId = '', slug = '', docId = ''] = process.argv.slice(2)
const db = openDatabase(databaseConfig(process.env['DATABASE_URL']!), 'test ahead')
const findRepository = async () => (await createReceivingRepositories(db).find('acme', slug, 'Z1'))!
const { documents } = await createReceive(db, testConfig())(await receivedDocument({ workspaceId, findRepository }, { data: 'old' }, docId))
console.log(documents[0]!.documentId)
await db.destroy()
