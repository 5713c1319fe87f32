import { createHash } from 'node:crypto'
import { createBlob } from '../../../src/connectors/blob/index.ts'
import { createEntraTokens } from '../../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { startAzurite } from '../../support/azurite.ts'
import { startBusyServer } from '../../support/busy-server.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startPages } from '../../support/pages.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import type { Destination, Rig, RunningTarget } from '../rig.ts'

const blob = createBlob(createEntraTokens(), createPartMemory())

const at = (origin: string): Destination => ({
  connector: createBlob(createEntraTokens(), createPartMemory()),
  config: { account_url: `${origin}/acme`, container: 'documents' },
  credentials: { account_key: 'c2VjcmV0' },
})

export const rig: Rig = {
  kind: 'blob',
  usesNetwork: true,
  demandsEvidence: true,
  holdsSeveralParts: true,
  connectorIn: () => blob,

  start: async (): Promise<RunningTarget> => {
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
    const read = async ({ path }: { path: string }, conditions: { ifMatch?: string } = {}) => {
      const location = `${server.accountUrl}/${container}/`
      if (!path.startsWith(`${location}relay/`)) throw new Error(`Unexpected path ${path}`)
      const stored = await client.getBlockBlobClient(path.slice(location.length)).download(0, undefined, { conditions })
      const hash = createHash('sha256')
      for await (const chunk of stored.readableStreamBody!) hash.update(chunk as Buffer)
      return { sha256: hash.digest('hex'), sizeBytes: stored.contentLength ?? -1, contentType: stored.contentType }
    }
    return {
      connector: blob,
      target,
      network: {
        port: server.port,
        pages: (status, which) => startPages(server.port, status, which),
        wrongCredentials: target(server.port, {}, { account_key: wrongKey }),
        secrets: [wrongKey, server.accountKey],
        busy: (load, retryAfter) =>
          startBusyServer(
            load,
            { 'retry-after': retryAfter, 'content-type': 'application/xml', 'x-ms-error-code': 'ServerBusy', 'x-ms-request-id': 'r1' },
            '<?xml version="1.0" encoding="utf-8"?><Error><Code>ServerBusy</Code><Message>The server is busy.</Message></Error>',
          ),
      },
      missingLocation: { target: target(server.port, { container: 'not-there' }), code: 'container_missing' },
      refusing: {
        steps: {
          'Put Blob': { operation: /^Put Blob of http\S+: / },
          'Put Block': { operation: /^Put Block \(block \d\) of http\S+: / },
          'Put Block List': { operation: /^Put Block List of http\S+: / },
        },
        start: async (step) => {
          const store = await startRefusingStore(server.port, (request, { searchParams }) => {
            const comp = request.method === 'PUT' ? (searchParams.get('comp') ?? 'blob') : undefined
            return { blob: 'Put Blob', block: 'Put Block', blocklist: 'Put Block List' }[comp ?? ''] === step
              ? { status: 403, headers: { 'x-ms-error-code': 'AuthorizationPermissionMismatch', 'x-ms-request-id': 'r1' } }
              : undefined
          })
          return { target: target(store.port), stop: store.stop }
        },
      },
      keepsContentType: true,
      partsExpire: true,
      properties: {
        names: ['Vendor', 'Invoice number'],
        foreign: 'scanned',
        read: async (_payload, { path }) => (await client.getBlobClient(path.split(`/${container}/`)[1]!).getTags()).tags,
        add: async (_payload, { path }, properties) =>
          void (await client.getBlobClient(path.split(`/${container}/`)[1]!).setTags(properties)),
      },
      read: (_payload, result) => read(result),
      readByNames: ({ etag }, result) => read(result, { ifMatch: String(etag) }),
      documents,
      leftovers: async () => {
        const complete = new Set(await documents())
        return (await names(true)).filter((name) => !complete.has(name))
      },
      reset: async () => {
        await client.delete()
        await client.create()
      },
      stop: server.stop,
    }
  },

  hostSettings: [{ name: 'the account_url of blob', destination: (host, port) => at(`http://${host}:${port}`) }],
  addressField: { key: 'account_url', form: 'url', config: { container: 'documents' }, connector: blob },
  tlsCases: [{ name: 'blob', destination: (port) => at(`https://127.0.0.1:${port}`), listen: startHttpTarget, isHttp: true }],

  startProbeTarget: async () => {
    const { accountUrl, accountKey, container, stop } = await startAzurite()
    return {
      connector: createBlob(createEntraTokens(), createPartMemory()),
      config: { account_url: accountUrl, container },
      credentials: { account_key: accountKey },
      mistakes: [
        ['another key', {}, { account_key: 'Y2FuYXJ5LWtleQ==' }, /account_key; check that it is a key of the account/],
        ['a missing container', { container: 'not-there' }, {}, /container not-there does not exist/],
        ['a SAS token that the account did not sign', {}, { account_key: undefined, sas_token: 'sp=cw&sig=canary' }, /sas_token/],
        ['another port', { account_url: `http://127.0.0.1:${await findFreePort()}/acme` }, {}, /nothing listens/],
      ],
      stop,
    }
  },

  startResumable: async () => {
    const { accountUrl: account_url, accountKey: account_key, container, client, stop } = await startAzurite()
    const connector = createBlob(createEntraTokens(), createPartMemory())
    return {
      connector,
      target: { config: connector.config.parse({ account_url, container }), credentials: { account_key } },
      stored: async ({ path }) => {
        const { metadata = {}, contentLength } = await client.getBlobClient(path.split(`/${container}/`)[1]!).getProperties()
        return [metadata.sha256, contentLength]
      },
      expected: ({ sha256, sizeBytes }) => [sha256, sizeBytes],
      documentCount: async () => {
        let count = 0
        for await (const _ of client.listBlobsFlat()) count += 1
        return count
      },
      unfinished: () => undefined,
      forget: async () => {
        await client.delete()
        await client.create()
      },
      stop,
    }
  },

  secretSamples: [
    [{ account_key: 'Y2FuYXJ5' }, ['Y2FuYXJ5']],
    [{ tenant_id: 'acme.example', client_id: 'client', client_secret: 'canary' }, ['canary']],
  ],
}
