import { maskedConfig } from '../connectors/target.ts'
import type { Enrichment, Enrichments } from '../enrichment/enrichments.ts'
import { enrichmentChange, enrichmentFields, newEnrichment } from '../enrichment/settings.ts'
import type { KeyLevel } from '../security/levels.ts'
import type { KeyRing } from '../security/seal.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { ProbeDeps } from '../workspace/targets.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf, timestamp } from './schemas.ts'

const enrichment = resource('enrichment', enrichmentFields.extend({ created_at: timestamp, updated_at: timestamp })).meta({
  id: 'Enrichment',
})

const presentRow = resourceOf('enrichment')

/** Presents an enrichment to a caller. A header may contain a secret, which viewers do not see. */
const presentTo =
  (level: KeyLevel) =>
  ({ http, ...row }: Enrichment) =>
    presentRow({ ...row, http: http && (level === 'viewer' ? { ...http, ...maskedConfig(['headers'], { headers: http.headers }) } : http) })

type Versioned = Pick<Enrichment, 'name' | 'repositoryIds' | 'isActive' | 'waitSeconds' | 'lateDays' | 'http' | 'steps' | 'hasCredentials'>
const versionOf = (values: Versioned) => [
  values.name,
  values.repositoryIds,
  values.isActive,
  values.waitSeconds,
  values.lateDays,
  values.http,
  values.steps,
  values.hasCredentials,
]
const version = ({ data }: { data: { attributes: Versioned } }) => versionOf(data.attributes)

export interface EnrichmentDeps extends Pick<ProbeDeps, 'outbound' | 'config'> {
  enrichments: Enrichments
  keyRing: KeyRing
}

export const enrichmentEndpoints = ({ enrichments, ...deps }: EnrichmentDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/enrichments',
      level: 'viewer',
      summary: 'List enrichments',
      description: 'Returns the enrichments of the workspace in the order in which they were created.',
      query: pageQuery,
      response: pageOfMany(enrichment),
      status: 200,
      handle: async ({ query }, { workspaceId, actor }) =>
        toPage(await enrichments.list(workspaceId, query), query, presentTo(actor.level)),
    }),

    endpoint({
      method: 'GET',
      path: '/enrichments/:id',
      level: 'viewer',
      summary: 'Retrieve an enrichment',
      params: idParams,
      response: one(enrichment),
      version,
      status: 200,
      handle: async ({ params }, { workspaceId, actor }) => ({
        data: presentTo(actor.level)(await enrichments.find(workspaceId, params.id)),
      }),
    }),

    endpoint({
      method: 'POST',
      path: '/enrichments',
      level: 'member',
      audit: 'enrichment.created',
      summary: 'Create an enrichment',
      description:
        'From then on, the documents that these repositories receive wait for their business data, for `wait_seconds` at most. ' +
        'docs/enrichments.md has an enrichment for each common kind of document.',
      body: newEnrichment,
      response: one(enrichment),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => ({
        data: presentTo(actor.level)(await enrichments.insert(workspaceId, body, actorOf(actor), deps)),
      }),
    }),

    endpoint({
      method: 'PATCH',
      path: '/enrichments/:id',
      level: 'member',
      audit: 'enrichment.updated',
      summary: 'Update an enrichment',
      description:
        '`repository_ids`, `http`, `steps` and `credentials` replace the current values. A call under way uses the previous ones.',
      params: idParams,
      body: enrichmentChange,
      response: one(enrichment),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Enrichment) => checkVersion(versionOf(current))
        return { data: presentTo(actor.level)(await enrichments.update(workspaceId, params.id, body, actorOf(actor), deps, check)) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/enrichments/:id',
      level: 'admin',
      audit: 'enrichment.deleted',
      summary: 'Delete an enrichment',
      description: 'Documents keep their fields. Deliveries that wait for the enrichment start when it would be tried next.',
      params: idParams,
      response: 'none',
      status: 204,
      checksVersion: true,
      handle: async ({ params }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Enrichment) => checkVersion(versionOf(current))
        await enrichments.delete(workspaceId, params.id, actorOf(actor), check)
      },
    }),
  ]
}
