import { z } from 'zod'
import type { Certificate, Certificates } from '../access/certificates.ts'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import { resourceId } from '../http/filters.ts'
import type { Repositories } from '../routing/repositories.ts'
import { certificateWarningCodes, certificateWarnings, isAuthId } from '../security/certificate.ts'
import { activity } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf, warningOf } from './schemas.ts'

interface CertificateDeps {
  certificates: Pick<Certificates, 'list' | 'add' | 'setStatus' | 'delete' | 'deleteInactive'>
  repositories: Pick<Repositories, 'find'>
  maxCertificates?: number
}

const warning = warningOf(
  'CertificateWarning',
  certificateWarningCodes,
  '`short_key`: the key is shorter than recommended. `md5`: the certificate is signed with MD5. `expired`: its validity has ended.',
  'What the condition means.',
)

const certificate = resource(
  'Certificate',
  'certificate',
  z.object({
    auth_id: z.string(),
    status: activity,
    subject: z.string(),
    issuer: z.string(),
    serial_number: z.string(),
    valid_from: timestamp,
    valid_to: timestamp,
    key_algorithm: z.string(),
    key_bits: z.int().nullable(),
    fingerprint_sha1: z.string(),
    fingerprint_sha256: z.string(),
    warnings: z.array(warning).describe('Conditions that an operator should know. Signatures are accepted nevertheless.'),
    received_at: timestamp,
    updated_at: timestamp,
  }),
)

const certificateParams = idParams.extend({ certificateId: resourceId.describe('The id of the certificate.') })
const status = activity.describe('Only signatures made with an active certificate are accepted.')
const resourceOfCertificate = resourceOf('certificate')
const present = (found: Certificate) => resourceOfCertificate({ ...found, warnings: certificateWarnings(found, new Date()) })

export const certificateEndpoints = ({ certificates, repositories, maxCertificates }: CertificateDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/repositories/:id/certificates',
      level: 'viewer',
      summary: 'List the certificates of a repository',
      description:
        'Returns the certificates in the order in which they were received. Compare the fingerprint before you activate a certificate.',
      params: idParams,
      query: pageQuery,
      response: pageOfMany(certificate),
      handle: async ({ params, query }, { workspaceId }) => {
        await repositories.find(workspaceId, params.id)
        return toPage(await certificates.list(workspaceId, params.id, query), query, present)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/repositories/:id/certificates',
      level: 'admin',
      audit: ['cert.received', 'cert.activated'],
      summary: 'Add a certificate to a repository',
      description: 'Use this endpoint if the source system cannot send its certificate itself.',
      params: idParams,
      body: z
        .strictObject({
          auth_id: z
            .string()
            .refine(isAuthId, 'must be a short text without control characters')
            .describe('The name under which the source system signs (`authId`).'),
          certificate: z.string().describe('The certificate as PEM, or as base64 of DER or PKCS #7.'),
          status: status.default('inactive'),
        })
        .meta({ id: 'CertificateInput' }),
      response: one(certificate),
      status: 201,
      conflict: 'The repository already has this certificate for this `auth_id`, or has reached the maximum number of certificates.',
      handle: async ({ params, body }, { workspaceId, actor }) => {
        await repositories.find(workspaceId, params.id)
        const { certificate: text, ...fields } = body
        const upload = { ...fields, text, workspaceId, repositoryId: params.id, actor: actorOf(actor) }
        return { data: present(await certificates.add(upload, maxCertificates)) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/repositories/:id/certificates/:certificateId',
      level: 'admin',
      audit: ['cert.activated', 'cert.deactivated'],
      summary: 'Activate or deactivate a certificate',
      description: 'Requests signed with the key of an active certificate are accepted.',
      params: certificateParams,
      body: z.strictObject({ status }).meta({ id: 'CertificateChange' }),
      response: one(certificate),
      handle: async ({ params, body }, { workspaceId, actor }) => {
        const owner = { workspaceId, repositoryId: params.id, actor: actorOf(actor) }
        return { data: present(await certificates.setStatus(owner, params.certificateId, body.status)) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/repositories/:id/certificates',
      operation: 'deleteInactiveCertificates',
      level: 'admin',
      audit: 'cert.deleted',
      summary: 'Delete the inactive certificates of a repository',
      description:
        'Deletes all inactive certificates, for example after somebody has sent many of them. A certificate that the source system sends ' +
        'again is added as inactive.',
      params: idParams,
      query: z.strictObject({ status: z.enum(['inactive']).describe('Must be `inactive`. Active certificates are deleted one by one.') }),
      response: 'none',
      handle: ({ params }, { workspaceId, actor }) =>
        certificates.deleteInactive({ workspaceId, repositoryId: params.id, actor: actorOf(actor) }),
    }),

    endpoint({
      method: 'DELETE',
      path: '/repositories/:id/certificates/:certificateId',
      level: 'admin',
      audit: 'cert.deleted',
      summary: 'Delete a certificate',
      description: 'If the source system sends the certificate again, it is added as inactive.',
      params: certificateParams,
      response: 'none',
      handle: ({ params }, { workspaceId, actor }) =>
        certificates.delete({ workspaceId, repositoryId: params.id, actor: actorOf(actor) }, params.certificateId),
    }),
  ]
}
