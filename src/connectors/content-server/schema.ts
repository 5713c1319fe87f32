import { z } from 'zod'
import { signingKeyIssue } from '../../security/cms-sign.ts'
import { caCertificate, listOf, plainText, plainUrl } from '../shared/schema-fields.ts'
import { noSignIn, withSignIns } from '../shared/sign-in.ts'

export const contentServerConfig = z.strictObject({
  url: plainUrl.describe('Address of the content server, with the HTTP script and without a query, as the source system has it'),
  repository: plainText(255).describe('Content repository there (`contRep`)'),
  document_ids: z
    .enum(['source', 'relay'])
    .default('source')
    .describe(
      'Id of a document there. source: the `doc_id` that the source system has given, so that its links stay valid; relay: the id of the document in this relay, for a server that must not get two documents with one `doc_id`',
    ),
  ca_certificate: caCertificate,
})

const signatureKeys = ['auth_id', 'certificate', 'private_key'] as const

const signature = z
  .strictObject({
    auth_id: plainText(255)
      .optional()
      .describe('Name of the certificate at the content server: the `authId` with which it was sent there, such as `CN=RELAY`'),
    // A certificate of a long RSA key has 3 KB.
    certificate: z
      .string()
      .max(20_000)
      .optional()
      .describe('PEM certificate that is active in the repository there. It is not sent with a document'),
    private_key: z
      .string()
      .max(20_000)
      .meta({ secret: true })
      .optional()
      .describe('PEM private key of certificate, without a passphrase: RSA, DSA or EC. It signs the URL of every request'),
  })
  .superRefine((credentials, context) => {
    const { certificate, private_key: privateKey } = credentials
    if (signatureKeys.every((key) => credentials[key] === undefined)) return
    for (const key of signatureKeys.filter((each) => credentials[each] === undefined)) {
      context.addIssue({ code: 'custom', path: [key], message: `is missing; ${listOf(signatureKeys)} must be set together` })
    }
    if (certificate === undefined || privateKey === undefined) return
    const issue = signingKeyIssue({ certificate, privateKey })
    if (issue !== undefined) context.addIssue({ code: 'custom', path: ['private_key'], message: issue })
  })

export const contentServerCredentials = withSignIns(signature, [{ name: 'signature', required: signatureKeys }, noSignIn])

export type ContentServerConfig = z.output<typeof contentServerConfig>
export type ContentServerCredentials = z.output<typeof contentServerCredentials>

/** A plausible destination, for documentation. */
export const contentServerExample = {
  config: { url: 'https://archive.example.com:1090/ContentServer/ContentServer.dll', repository: 'Z1' },
  credentials: {},
}
