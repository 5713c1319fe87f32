import { z } from 'zod'
import type { Config } from '../config.ts'
import { createCertificates } from '../db/certificates.ts'
import type { Database } from '../db/database.ts'
import { createRepositories } from '../db/repositories.ts'
import { AppError } from '../errors.ts'
import { isId } from '../ids.ts'
import { isAuthId, readCertificate } from '../security/certificate.ts'
import { actorOf } from './actor.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound, validationFailed } from './faults.ts'
import { activity, idParams, one, pageOfMany, pageQuery, resource, resourceOf, timestamp, toPage } from './schemas.ts'

export interface CertificateDeps {
  db: Database
  config: Pick<Config, 'RELAY_CERTIFICATE_MAX_BYTES' | 'RELAY_REPOSITORY_MAX_CERTIFICATES'>
}

const certificate = resource(
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
    received_at: timestamp,
    updated_at: timestamp,
  }),
).meta({ id: 'Certificate' })

const certificateParams = idParams.extend({ certificateId: z.string().refine(isId).describe('The id of the certificate') })
const present = resourceOf('certificate')

export const certificateEndpoints = ({ db, config }: CertificateDeps): Endpoint[] => {
  const certificates = createCertificates(db)
  const repositories = createRepositories(db)
  return [
    endpoint({
      method: 'GET',
      path: '/repositories/:id/certificates',
      level: 'viewer',
      summary: 'The certificates of a repository, in order of receipt, with the fingerprints to compare before activation',
      params: idParams,
      query: pageQuery,
      response: pageOfMany(certificate),
      status: 200,
      handle: async ({ params, query }, { workspaceId }) => {
        if (!(await repositories.find(workspaceId, params.id))) throw notFound()
        return toPage(await certificates.list(workspaceId, params.id, query), query, present)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/repositories/:id/certificates',
      level: 'admin',
      audit: ['cert.received', 'cert.activated'],
      summary: 'Adds a certificate that the source system has not sent itself: PEM, or base64 of DER or PKCS#7',
      params: idParams,
      body: z.strictObject({
        auth_id: z
          .string()
          .refine(isAuthId, 'must not be empty, nor long, nor hold control characters')
          .describe('By which name the source system signs'),
        certificate: z.string().describe('PEM, or base64 of DER or PKCS#7'),
        status: activity.default('inactive').describe('Only what an active one has signed is taken'),
      }),
      response: one(certificate),
      status: 201,
      conflict: 'The repository has this certificate for this auth_id already, or as many as it may',
      handle: async ({ params, body }, { workspaceId, actor }) => {
        if (!(await repositories.find(workspaceId, params.id))) throw notFound()
        const given = Buffer.from(body.certificate)
        const facts = given.length <= config.RELAY_CERTIFICATE_MAX_BYTES ? readCertificate(given) : undefined
        if (!facts) {
          throw validationFailed([{ path: 'certificate', message: 'must be an X.509 certificate with a DSA, RSA or EC key' }])
        }
        const outcome = await certificates.receive(
          { ...body, workspaceId, repositoryId: params.id, received: facts.der, facts, actor: actorOf(actor) },
          config.RELAY_REPOSITORY_MAX_CERTIFICATES,
        )
        if (outcome === 'repository_gone') throw notFound()
        if (outcome === 'too_many') throw new AppError('conflict', 'The repository holds as many certificates as it may: delete some.')
        if (!outcome.isNew)
          throw new AppError('conflict', `The repository has this certificate for this auth_id: ${outcome.certificate.id}.`)
        return { data: present(outcome.certificate) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/repositories/:id/certificates/:certificateId',
      level: 'admin',
      audit: ['cert.activated', 'cert.deactivated'],
      summary: 'Activates a certificate, so that requests signed with its key are taken, or deactivates it',
      params: certificateParams,
      body: z.strictObject({ status: activity.describe('Only what an active one has signed is taken') }),
      response: one(certificate),
      status: 200,
      handle: async ({ params, body }, { workspaceId, actor }) => {
        const changed = await certificates.setStatus(workspaceId, params.id, params.certificateId, body.status, actorOf(actor))
        if (!changed) throw notFound()
        return { data: present(changed) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/repositories/:id/certificates/:certificateId',
      level: 'admin',
      audit: 'cert.deleted',
      summary: 'Removes a certificate; the source system may send it again, and it is inactive then',
      params: certificateParams,
      response: 'none',
      status: 204,
      handle: async ({ params }, { workspaceId, actor }) => {
        if (!(await certificates.remove(workspaceId, params.id, params.certificateId, actorOf(actor)))) throw notFound()
      },
    }),
  ]
}
