import { Readable } from 'node:stream'
import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import type { Stores } from '../content/store.ts'
import type { Download } from '../http/attachments.ts'
import { manifestFields, type ManifestParts, type Manifests } from '../proof/manifests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'

const manifest = resource('Manifest', 'manifest', manifestFields)

const dayParams = z.object({ day: z.iso.date().describe('The day in UTC, like 2026-11-28.') })

const bytesOf = (bytes: Buffer): Pick<Download, 'sizeBytes' | 'open'> => ({
  sizeBytes: bytes.length,
  open: () => Readable.from([bytes], { objectMode: false }),
})

interface Part {
  summary: string
  description: string
  download(manifest: ManifestParts, contents: Stores): Download
}

const parts: Record<string, Part> = {
  file: {
    summary: 'Download the manifest of a day',
    description: 'Returns the file: a line of JSON for each document that was received on that day, as docs/proof.md describes it.',
    download: ({ id, content }, contents) => {
      const store = contents[content.store]
      if (!store)
        throw new AppError('unavailable', `The file is in the ${content.store} store, which this process is not configured to use.`)
      const { sizeBytes } = content
      return { contentType: 'application/jsonl', fileName: `${id}.jsonl`, sizeBytes, open: (range) => store.read(content, range) }
    },
  },
  signature: {
    summary: 'Download the signature of a manifest',
    description: 'Returns the detached signature of the file, CMS in DER.',
    download: ({ id, signature }) => ({ contentType: 'application/pkcs7-signature', fileName: `${id}.p7s`, ...bytesOf(signature) }),
  },
  timestamp: {
    summary: 'Download the time stamp of a manifest',
    description: 'Returns the answer of the time stamping authority (RFC 3161) in DER. The answer is 404 if there is none.',
    download: ({ id, stamp }) => {
      if (!stamp) throw notFound()
      return { contentType: 'application/timestamp-reply', fileName: `${id}.tsr`, ...bytesOf(stamp) }
    },
  },
  certificate: {
    summary: 'Download the certificate of a manifest',
    description:
      'Returns the certificate that verifies the signature, in PEM. Compare it with one that `relay proof certificate` has printed.',
    download: ({ id, certificate }) => ({
      contentType: 'application/x-pem-file',
      fileName: `${id}.pem`,
      ...bytesOf(Buffer.from(certificate)),
    }),
  },
}

interface ManifestDeps {
  manifests: Manifests
  contents: Stores
}

export const manifestEndpoints = ({ manifests, contents }: ManifestDeps): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/manifests',
    level: 'viewer',
    summary: 'List the manifests of days',
    description:
      'Returns the manifests of the workspace, newest first. One is made for each day (UTC), some minutes after its end. Its `id` is the day.',
    query: pageQuery,
    response: pageOfMany(manifest),
    handle: async ({ query }, { workspaceId }) => toPage(await manifests.list(workspaceId, query), query, resourceOf('manifest')),
  }),
  ...Object.entries(parts).map(([name, { download, ...texts }]) =>
    endpoint({
      method: 'GET',
      path: `/manifests/:day/${name}`,
      level: 'viewer',
      ...texts,
      params: dayParams,
      response: 'bytes',
      handle: async ({ params: { day } }, { workspaceId }) => download(await manifests.find(workspaceId, day), contents),
    }),
  ),
]
