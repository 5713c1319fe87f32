import { createHash } from 'node:crypto'
import { createBlob } from '../../src/connectors/blob.ts'
import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { startAzurite } from '../support/azurite.ts'
import { startBusyServer } from '../support/busy-server.ts'
import { describeConnector } from './conformance.ts'

describeConnector('blob', async () => {
  const blob = createBlob(createEntraTokens())
  const server = await startAzurite()
  const { client, accountName, container } = server
  const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
    config: blob.config.parse({ account_url: `http://127.0.0.1:${port}/${accountName}`, container, prefix: 'relay/', ...config }),
    credentials: blob.credentials.parse({ account_key: server.accountKey, ...credentials }),
  })
  const names = async (includeUncommitedBlobs: boolean) => {
    const found: string[] = []
    for await (const { name } of client.listBlobsFlat({ includeUncommitedBlobs })) found.push(name)
    return found
  }
  const documents = () => names(false)
  const wrongKey = Buffer.from('not the key of the account').toString('base64')
  return {
    connector: blob,
    port: server.port,
    target,
    wrongCredentials: target(server.port, {}, { account_key: wrongKey }),
    busy: (load, retryAfter) =>
      startBusyServer(
        load,
        { 'retry-after': retryAfter, 'content-type': 'application/xml', 'x-ms-error-code': 'ServerBusy', 'x-ms-request-id': 'r1' },
        '<?xml version="1.0" encoding="utf-8"?><Error><Code>ServerBusy</Code><Message>The server is busy.</Message></Error>',
      ),
    missingPlace: { target: target(server.port, { container: 'not-there' }), code: 'container_missing' },
    secrets: [wrongKey, server.accountKey],
    keepsContentType: true,
    partsExpire: true,
    read: async (_parcel, { path }) => {
      const place = `${server.accountUrl}/${container}/`
      if (!path.startsWith(`${place}relay/`)) throw new Error(`unexpected path ${path}`)
      const stored = await client.getBlockBlobClient(path.slice(place.length)).download()
      const hash = createHash('sha256')
      for await (const chunk of stored.readableStreamBody!) hash.update(chunk as Buffer)
      return { sha256: hash.digest('hex'), sizeBytes: stored.contentLength ?? -1, contentType: stored.contentType }
    },
    documents,
    leftovers: async () => {
      const whole = new Set(await documents())
      return (await names(true)).filter((name) => !whole.has(name))
    },
    reset: async () => {
      await client.delete()
      await client.create()
    },
    stop: server.stop,
  }
})
