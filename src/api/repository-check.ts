import { z } from 'zod'
import { resultStatuses } from '../../clients/check-source/src/run.ts'
import { quickProfiles, type CheckRepository } from '../check-source/check-repository.ts'
import { actorOf } from '../db/audit.ts'
import { toCamelCase } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import type { Repositories } from '../routing/repositories.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { idParams, one } from './schemas.ts'

const checkProfile = z.enum(quickProfiles).meta({ id: 'RepositoryCheckProfile' })
const checkInput = z
  .strictObject({ profile: checkProfile.default('smoke').describe('How much is checked.') })
  .meta({ id: 'RepositoryCheckInput' })

const checkReport = z
  .object({
    profile: checkProfile,
    signed: z.boolean().describe('True if the repository requires signatures, so that the requests were signed.'),
    started_at: timestamp,
    duration_ms: z.int(),
    passed: z.int(),
    failed: z.int(),
    not_offered: z.int(),
    not_checked: z.int(),
    interrupted: z.boolean().describe('True if the check took too long and was stopped.'),
    left_behind: z.array(z.string()).describe('The docIds of documents of the check that the repository may still have.'),
    results: z.array(
      z
        .object({
          id: z.string().describe('The name of the check.'),
          title: z.string().describe('What a content server does.'),
          status: z.enum(resultStatuses).meta({ id: 'RepositoryCheckStatus' }),
          message: z.string().nullable().describe('What was found. Null if the check passed.'),
          remedy: z.string().nullable().describe('What to do. Null unless the check failed.'),
          duration_ms: z.int(),
        })
        .meta({ id: 'RepositoryCheckResult' }),
    ),
  })
  .meta({ id: 'RepositoryCheck' })

interface RepositoryCheckDeps {
  repositories: Pick<Repositories, 'find'>
  checkRepository: CheckRepository
}

export const repositoryCheckEndpoints = ({ repositories, checkRepository }: RepositoryCheckDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'POST',
      path: '/repositories/:id/check',
      level: 'admin',
      audit: ['repository.checked', 'cert.received', 'cert.activated', 'cert.deleted'],
      summary: 'Check a repository',
      description:
        'Uses the repository as its source system would, over HTTP at the receiver of this process, and reports what is wrong: the checks of ' +
        '`relay check source`. If the repository requires signatures, a certificate of the check is sent, activated and deleted again. The ' +
        'documents of the check are deleted from the archive at its end, and delivered like any others before. What has not arrived up to 5 seconds ' +
        'after its end is cancelled. Takes a second or two.',
      params: idParams,
      body: checkInput,
      response: one(checkReport),
      isTest: true,
      conflict:
        'The repository is inactive or on legal hold, no connection leads from it to a destination, or a check of the workspace is running.',
      handle: async ({ params, body }, { workspaceId, actor, signal }) => {
        const found = await repositories.find(workspaceId, params.id)
        const report = await checkRepository(actor.workspace, found, { profile: body.profile, actor: actorOf(actor), signal })
        return { data: toCamelCase(checkReport, checkReport.parse(report)) }
      },
    }),
  ]
}
