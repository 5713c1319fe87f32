import { GetObjectCommand, ListObjectVersionsCommand, PutBucketLifecycleConfigurationCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { createRetention } from '../../src/maintenance/retention.ts'
import { testConfig } from '../support/factories.ts'
import { startMinio } from '../support/minio.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { withoutManifests } from '../support/without-manifests.ts'
import { startHomeScene } from './scene.ts'

// Against MinIO, which runs the rules of a lifecycle, on a bucket with Object Lock.

const store = share(await startMinio())
const scene = share(await startHomeScene())
const { client, bucket: Bucket } = store
const bytes = Buffer.from('an invoice')

/** Receives a document, and lets go of its content when it is at its home. */
const atHome = async (prefix: string, config: object) => {
  const home = await scene.workspace({
    connector: 'objstore',
    config: { bucket: Bucket, region: 'us-east-1', endpoint: store.endpoint, path_style: true, prefix, ...config },
    credentials: { access_key_id: store.accessKeyId, secret_access_key: store.secretAccessKey },
  })
  await home.setHome()
  expect((await home.source.create('D1', bytes)).status).toBe(201)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  await home.move()
  expect([await home.movedCount(), await home.bytesHere()]).toEqual([1, 0])
  const document = await scene.db('documents').where({ workspace_id: home.workspaceId }).first()
  const delivery = await scene.db('deliveries').where({ workspace_id: home.workspaceId }).first()
  return {
    ...home,
    documentId: document.id as string,
    Key: `${prefix}${delivery.path}`,
    version: delivery.receipt.target.version_id as string,
  }
}
type Home = Awaited<ReturnType<typeof atHome>>

const versionsOf = async ({ Key }: Home): Promise<(string | undefined)[]> => {
  const { Versions = [], DeleteMarkers = [] } = await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: Key }))
  return [...DeleteMarkers.map(() => 'marker'), ...Versions.map(({ VersionId }) => VersionId)]
}

const day = 86_400_000
const midnight = new Date(Math.floor(Date.now() / day) * day)

test('a held document survives retention, erasure, delete and the lifecycle of the bucket, and is read there', async () => {
  const held = await atHome('held/', { legal_hold: true })
  const retained = await atHome('retained/', { retain_days: 10, object_lock_mode: 'GOVERNANCE' })
  const free = await atHome('free/', {})
  const subject = { repo_id: 'Z1', doc_id: 'D1', reason: 'Tax audit' }
  expect((await held.call('POST', '/legal-holds', subject)).status).toBe(201)

  const removed = await atHome('removed/', {})
  for (const { workspaceId, age } of [held, removed]) {
    await age('D1')
    await scene
      .db('workspaces')
      .where({ id: workspaceId })
      .update({ settings: { content_days: 1 } })
  }
  await withoutManifests(scene.db)
  await createRetention(scene.db, testConfig()).removeExpired(new Date(), new AbortController().signal)
  const hasContent = ({ workspaceId }: Home) => scene.db('contents').where({ workspace_id: workspaceId }).whereNotNull('owned_at')
  expect([await hasContent(held), await hasContent(removed)]).toEqual([[expect.anything()], []])
  expect((await held.ask('DELETE', `/documents/${held.documentId}/content`)).status).toBe(409)
  expect((await held.source.delete('D1')).headers['x-errordescription']).toMatch(/^document_on_hold: /)

  // Another program writes under the same keys, so that each document is two versions behind the last one.
  for (const Body of ['second', 'third']) {
    for (const { Key } of [held, retained, free]) await client.send(new PutObjectCommand({ Bucket, Key, Body }))
  }
  const Rules = [
    {
      ID: 'expire',
      Status: 'Enabled' as const,
      Filter: { Prefix: '' },
      Expiration: { Date: midnight },
      // All former versions but one, at once: an extension of MinIO.
      NoncurrentVersionExpiration: { NewerNoncurrentVersions: 1 },
    },
  ]
  await client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }))
  for (const home of [held, retained, free]) {
    // Behind the delete marker: the last version, which the rule keeps, and the one that is locked.
    const behind = home === free ? 1 : 2
    const versions = await until(
      'the rule has run',
      () => versionsOf(home),
      ([first, ...others]) => first === 'marker' && others.length === behind,
    )
    expect(versions.includes(home.version)).toBe(home !== free)
    await expect(client.send(new GetObjectCommand({ Bucket, Key: home.Key }))).rejects.toMatchObject({ name: 'NoSuchKey' })
  }

  for (const home of [held, retained]) {
    expect((await home.source.get('D1')).body).toEqual(bytes)
    expect((await home.source.get('D1', '&fromOffset=3&toOffset=5')).body).toEqual(bytes.subarray(3, 6))
  }
  expect((await free.source.get('D1')).headers['x-errordescription']).toMatch(/^home_failed: /)
})
