import { commandGroups, createCli } from '../../src/cli/cli.ts'
import { describeFailures, describeRetried, listFailures, retryDestination } from '../../src/cli/failures.ts'
import { insertDocument } from '../api/insert-document.ts'
import { objstore, wire } from '../api/objstore.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { db, acme, other } = share(await startScene())
const wired = await wire(acme, 'A1')
const { name } = await db('destinations').where({ id: wired.destinationId }).first()

beforeEach(async () => {
  for (const table of ['outbox', 'deliveries', 'documents', 'bulk_retries', 'audit_logs']) await db(table).delete()
})

/** Inserts a document whose delivery has this error. */
const insertWith = async (status: 'failed' | 'retrying', code: string | null, message: string) => {
  const documents = {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    deliveries: [{ ...wired, status: 'pending' as const }],
  }
  const id = await insertDocument(db, { ...documents, status: 'pending' })
  await db('deliveries')
    .where({ document_id: id })
    .update({ status, last_error: message, last_error_code: code, ...(status === 'failed' && { ended_by: 'permanent_error' }) })
  return id
}

const wanted = { destination: name as string, onProgress: () => {} }
const never = () => Promise.reject(new Error('nothing is started'))

test('failures are listed by destination and error with what to do and the command that retries them, those that are retried below', async () => {
  expect(describeFailures(await listFailures(db, undefined))).toEqual(['No failed delivery needs attention, and none is retried.'])
  await insertWith('failed', 'bucket_missing', 'there is no bucket invoises')
  await insertWith('failed', 'bucket_missing', 'there is no bucket invoises')
  await insertWith('failed', null, 'the delivery workflow was cancelled')
  await insertWith('retrying', 'timeout', 'the target was silent')
  const groups = await listFailures(db, acme.name)
  expect(groups).toMatchObject([
    { workspace: acme.name, status: 'failed', error_code: 'bucket_missing', deliveries: 2, destination_id: wired.destinationId },
    { status: 'failed', error_code: null, deliveries: 1 },
    { status: 'retrying', error_code: 'timeout', deliveries: 1 },
  ])
  const retry = (code: string) => `  relay retry --workspace ${acme.name} --destination '${name}' --error ${code}`
  expect(describeFailures(groups)).toEqual([
    expect.stringMatching(new RegExp(`^${acme.name}: 2 deliveries to ${name} failed with bucket_missing, the latest at 2.* UTC$`)),
    '  there is no bucket invoises',
    `  What to do: Create the bucket, or correct the bucket of destination ${name}, then retry the deliveries.`,
    retry('bucket_missing'),
    expect.stringContaining('1 delivery'),
    '  the delivery workflow was cancelled',
    '  What to do: Retry what is still needed there; acknowledge the rest.',
    retry('none'),
    expect.stringContaining('retried with timeout'),
    '  the target was silent',
    `  What to do: Check that destination ${name} is reachable and accepts requests. The relay tries again by itself.`,
  ])
  expect((await listFailures(db, undefined)).map(({ status }) => status)).toEqual(groups.map(({ status }) => status))
  expect(describeFailures([{ ...groups[0]!, destination_name: "Ada's mailbox" }]).at(-1)).toContain(
    String.raw`--destination 'Ada'\''s mailbox'`,
  )
})

test('failed deliveries to a destination are retried, all or those with an error, with progress; a dry run counts them', async () => {
  await db('deliveries').where({ workspace_id: acme.id }).update({ status: 'delivered' })
  const missing = await insertWith('failed', 'bucket_missing', 'there is no bucket invoises')
  const ended = await insertWith('failed', null, 'the delivery workflow was cancelled')
  expect(describeRetried(await retryDestination(db, never, { ...wanted, dryRun: true }))).toEqual(['2 documents would be retried.'])
  expect(describeRetried(await retryDestination(db, never, { ...wanted, error: 'none', dryRun: true }))).toEqual([
    '1 document would be retried.',
  ])
  const progress: string[] = []
  const result = await retryDestination(
    db,
    async (message) => {
      if (message.kind === 'startBulkRetry') await bulkPageOf(db)(message.input.bulkRetryId, 100, () => {})
      await db('deliveries').where({ document_id: missing }).update({ status: 'delivered' })
    },
    { ...wanted, workspace: acme.name, error: 'bucket_missing', onProgress: (line) => void progress.push(line) },
  )
  expect(describeRetried(result)).toEqual(['1 of 1 document retried.', 'Of 1 delivery, 1 arrived, 0 failed and 0 are open.'])
  expect(progress).toEqual(['1 of 1 documents'])
  expect(await db('deliveries').where({ document_id: ended }).first()).toMatchObject({ status: 'failed' })
})

test('a retry that cannot be meant is refused, and says what there is', async () => {
  await insertWith('failed', 'timeout', 'the target was silent')
  const retried = (more: object) => retryDestination(db, never, { ...wanted, ...more })
  await expect(retried({ destination: 'Nowhere' })).rejects.toThrow('There is no destination Nowhere. relay failures lists')
  await expect(retried({ destination: 'Nowhere', workspace: acme.name })).rejects.toThrow(
    `The workspace ${acme.name} has no destination Nowhere.`,
  )
  await expect(retried({ error: 'bucket_missing' })).rejects.toThrow(
    `No delivery to ${name} that needs attention has failed with bucket_missing.`,
  )
  await expect(retried({ workspace: 'acme/none' })).rejects.toThrow(/^There is no workspace acme\/none\. There is: .*\w+\/\w+/)
  const id = await other.create('/destinations', objstore(name))
  await expect(retried({})).rejects.toThrow(`Several workspaces have a destination ${name}. Name one of them with --workspace: `)
  await other.call('DELETE', `/destinations/${id}`)
})

test('the help lists every command in a group, and each group has commands', () => {
  const program = createCli({})
  const grouped = Object.values(commandGroups).flat()
  const names = program.commands.map((command) => command.name())
  expect(names.filter((each) => !grouped.includes(each)).toSorted()).toEqual(['json-schema', 'openapi'])
  expect(grouped.filter((each) => !names.includes(each))).toEqual([])
  const headings = program.helpInformation().match(/^\w.*:$/gm)
  expect(headings).toEqual(['Options:', ...Object.keys(commandGroups), 'Other:'])
})
