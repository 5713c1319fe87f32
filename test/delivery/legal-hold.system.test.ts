import { createHash } from 'node:crypto'
import { DeleteObjectCommand, GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { startRelay } from '../support/relay.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

const env = share(await startTemporalServer())
const relay = share(await startRelay(env, { RETENTION_DOCUMENTS_DAYS: '1' }))
const bucket = share(await startS3Server({ isLocked: true }))

test('a document on hold survives retention, erasure, a delete of the source system, and the removal at the target', async () => {
  await relay.run(async ({ api, createRoutes }) => {
    const target = {
      name: 'archive',
      connector: 'objstore',
      config: {
        bucket: bucket.bucket,
        region: 'us-east-1',
        endpoint: bucket.endpoint,
        path_style: true,
        object_lock_mode: 'COMPLIANCE',
        retain_days: 3_650,
        legal_hold: true,
      },
      credentials: { access_key_id: bucket.accessKeyId, secret_access_key: bucket.secretAccessKey },
    }
    const { call, workspaceId, workspaceSlug } = await createRoutes([target], { workspaceSettings: { content_days: 1 } })
    const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
    expect((await source.create('D1', 'an invoice')).status).toBe(201)
    const shown = async () => (await call('GET', '/documents')).json.data[0]
    const { id } = await until('the document is delivered', shown, (document) => document?.attributes.status === 'delivered')
    const { attributes } = (await call('GET', `/documents/${id}`)).json.data
    const [{ path, receipt }] = attributes.deliveries
    expect(receipt.target).toMatchObject({ object_lock_mode: 'COMPLIANCE', legal_hold: 'on', retain_until: expect.any(String) })

    const set = await call('POST', '/legal-holds', { repo_id: 'Z1', doc_id: 'D1', reason: 'Tax audit 2026' })
    expect(set.status).toBe(201)
    await relay
      .db('documents')
      .where({ id })
      .update({ received_at: new Date('2026-03-02T10:15:30Z') })
    await createRetention(relay.db, relay.config).removeExpired(new Date(), new AbortController().signal)
    await sweepOrphans(relay.db, { postgres: createPostgresStore(relay.db) }, new Date(Date.now() + 86_400_000))
    expect(await call('DELETE', `/documents/${id}/content`)).toMatchObject({ status: 409 })
    const refused = await source.delete('D1')
    expect([refused.status, refused.headers['x-errordescription']]).toEqual([409, expect.stringMatching(/^document_on_hold: /)])
    // The refusal is captured as every request is.
    const captured = () => call('GET', `/requests/${refused.headers['x-relay-request-id']}`)
    const { json } = await until('the delete is captured', captured, ({ status }) => status === 200)
    expect(json.data.attributes).toMatchObject({ status_code: 409, error_code: 'document_on_hold' })
    expect(String((await source.get('D1')).body)).toBe('an invoice')

    const object = { Bucket: bucket.bucket, Key: path.replace(`s3://${bucket.bucket}/`, '') }
    const { VersionId } = await bucket.client.send(new HeadObjectCommand(object))
    await bucket.client.send(new DeleteObjectCommand(object))
    await expect(bucket.client.send(new DeleteObjectCommand({ ...object, VersionId }))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    })
    const { Body } = await bucket.client.send(new GetObjectCommand({ ...object, VersionId }))
    const kept = createHash('sha256').update(await Body!.transformToByteArray())
    expect(kept.digest('hex')).toBe(receipt.sha256)

    await call('POST', `/legal-holds/${set.json.data.id}/lift`, { reason: 'The audit has ended' })
    expect((await source.delete('D1')).status).toBe(200)
    await createRetention(relay.db, relay.config).removeExpired(new Date(), new AbortController().signal)
    expect(await relay.db('documents').where({ workspace_id: workspaceId }).whereNotNull('content_id')).toEqual([])
    const events = await relay.db('audit_logs').where({ workspace_id: workspaceId }).whereLike('event', 'legal_hold.%').orderBy('id')
    expect(events).toMatchObject([
      { event: 'legal_hold.set', metadata: { reason: 'Tax audit 2026', key_name: expect.any(String) } },
      { event: 'legal_hold.lifted', metadata: { reason: 'The audit has ended', key_name: expect.any(String) } },
    ])
    await source.close()
  })
}, 120_000)
