import { z } from 'zod'
import { notFound } from '../base/refusals.ts'
import type { Stores } from '../content/store.ts'
import { manifestFields, partsOf, type Manifests } from '../proof/manifests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'

const manifest = resource('Manifest', 'manifest', manifestFields)

const dayParams = z.object({ day: z.iso.date().describe('The day in UTC, like 2026-11-28.') })

/** The parts by the ends of their file names. */
const parts = {
  file: {
    end: 'jsonl',
    summary: 'Download the manifest of a day',
    description:
      'Returns the file: a line of JSON for each document that was received on that day, as `/docs/proof` of the relay describes it.',
  },
  signature: {
    end: 'p7s',
    summary: 'Download the signature of a manifest',
    description: 'Returns the detached signature of the file, CMS in DER.',
  },
  timestamp: {
    end: 'tsr',
    summary: 'Download the time stamp of a manifest',
    description: 'Returns the answer of the time stamping authority (RFC 3161) in DER. The answer is 404 if there is none.',
  },
  certificate: {
    end: 'pem',
    summary: 'Download the certificate of a manifest',
    description:
      'Returns the certificate that verifies the signature, in PEM. Compare it with one that `relay proof certificate` has printed.',
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
  ...Object.entries(parts).map(([name, { end, ...texts }]) =>
    endpoint({
      method: 'GET',
      path: `/manifests/:day/${name}`,
      level: 'viewer',
      ...texts,
      params: dayParams,
      response: 'bytes',
      handle: async ({ params: { day } }, { workspaceId }) => {
        const part = partsOf(await manifests.find(workspaceId, day), contents).find(({ fileName }) => fileName.endsWith(`.${end}`))
        if (!part) throw notFound()
        return part
      },
    }),
  ),
]
