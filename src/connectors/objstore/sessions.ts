import type { AssumeRoleCommandOutput, STSClient, STSClientConfig } from '@aws-sdk/client-sts'
import { grantedTo, type Grant } from '../../base/grants.ts'
import { withoutSecrets } from '../../base/secrets.ts'
import { cutText } from '../../base/text.ts'
import { DeliveryError, type AttemptContext, type Target } from '../connector.ts'
import { createAccessTokens, type AccessToken, type AccessTokens, type TokenCache } from '../shared/access-tokens.ts'
import type { RequestContext } from '../shared/cloud-api.ts'
import { noteOperation } from '../shared/operation.ts'
import type { ReadTokenFile } from '../shared/token-files.ts'
import type { ObjstoreConfig, ObjstoreCredentials } from './schema.ts'
import { sessionError } from './session-errors.ts'

/** A role of AWS that a destination of a workspace assumes. */
export interface RolePrincipal {
  workspace: string
  roleArn: string
  externalId?: string | undefined
  /** The file with the token that proves who assumes the role. Without it, the identity of the relay does. */
  tokenFile?: string | undefined
  /** The region of the bucket, whose Security Token Service is asked. */
  region: string
}

/** Credentials that AWS has issued for a time. `token` is the session token. */
interface AwsSession extends AccessToken {
  accessKeyId: string
  secretAccessKey: string
}

export type AwsSessions = AccessTokens<RolePrincipal, AwsSession>

/** Returns the role of the credentials, undefined if they are an access key. */
export const rolePrincipalOf = (
  { config: { region }, credentials }: Target<ObjstoreConfig, ObjstoreCredentials>,
  { workspace }: Pick<AttemptContext, 'workspace'>,
): RolePrincipal | undefined => {
  const { role_arn: roleArn, external_id: externalId, federated_token_file: tokenFile } = credentials
  return roleArn === undefined ? undefined : { workspace, roleArn, externalId, tokenFile, region }
}

/** What only tests replace: the address of the Security Token Service, and the identity of the relay. */
type StsSettings = Pick<STSClientConfig, 'endpoint' | 'credentials'>

/**
 * Creates the sessions of the roles that destinations assume. The relay proves who it is by its own identity, which the SDK finds as for
 * every program (environment, profile, web identity, container, instance), or by the token of a file. It never uses its own identity for
 * more than that: a workspace gets what a role may do that the operator has allowed to it, and nothing else.
 * @param grants the ARNs of the roles that workspaces may assume
 */
export const createAwsSessions = (
  cache: TokenCache,
  grants: readonly Grant[],
  readTokenFile: ReadTokenFile,
  settings: StsSettings = {},
): AwsSessions => {
  const assume = async (principal: RolePrincipal, context: RequestContext): Promise<AwsSession> => {
    const { workspace, roleArn, tokenFile } = principal
    const operation = `${tokenFile === undefined ? 'AssumeRole' : 'AssumeRoleWithWebIdentity'} of ${roleArn}`
    const secrets: string[] = []
    try {
      if (!grantedTo(grants, workspace).includes(roleArn)) throw notAllowed(workspace)
      const token = tokenFile === undefined ? undefined : await readTokenFile(tokenFile, workspace)
      if (token !== undefined) secrets.push(token)
      const requestedAt = Date.now()
      return sessionOf(await sendRequest(principal, token, context, settings), requestedAt)
    } catch (thrown) {
      context.signal.throwIfAborted()
      const error = sessionError(thrown, principal)
      const clean = (text: string) => withoutSecrets(text, secrets)
      noteOperation(thrown, operation)
      throw error.reworded(thrown, clean, (answer) => ({ ...answer, ...(answer.body !== undefined && { body: clean(answer.body) }) }))
    }
  }
  return createAccessTokens(cache, 'aws', assume)
}

const notAllowed = (workspace: string) =>
  new DeliveryError('credentials_refused', `the operator of the relay does not allow this role to ${workspace} (RELAY_S3_ROLES)`, {
    permanent: true,
  })

/** Asks the Security Token Service, with the certificates that the relay trusts: that of a destination is for its store. */
const sendRequest = async (
  { workspace, roleArn, externalId, region }: RolePrincipal,
  token: string | undefined,
  context: RequestContext,
  settings: StsSettings,
): Promise<AssumeRoleCommandOutput> => {
  // Imports the SDK, which costs a process 34 MiB.
  const [{ AssumeRoleCommand, AssumeRoleWithWebIdentityCommand, STSClient }, { requestOptions }] = await Promise.all([
    import('@aws-sdk/client-sts'),
    import('./client.ts'),
  ])
  const client: STSClient = new STSClient({ region, ...settings, ...requestOptions(context) })
  const role = { RoleArn: roleArn, RoleSessionName: sessionNameOf(workspace) }
  const { signal: abortSignal } = context
  try {
    return token === undefined
      ? await client.send(new AssumeRoleCommand({ ...role, ExternalId: externalId }), { abortSignal })
      : await client.send(new AssumeRoleWithWebIdentityCommand({ ...role, WebIdentityToken: token }), { abortSignal })
  } finally {
    client.destroy()
  }
}

const sessionNameMaxCharacters = 64

/** Returns the name of a session in the logs of AWS, by which its account sees for whom the relay acts. */
const sessionNameOf = (workspace: string) => cutText(`document-relay.${workspace.replace('/', '.')}`, sessionNameMaxCharacters)

// The shortest session that AWS issues lasts 15 minutes.
const shortestMs = 15 * 60_000

const sessionOf = ({ Credentials }: AssumeRoleCommandOutput, requestedAt: number): AwsSession => {
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: token, Expiration: expiresAt } = Credentials ?? {}
  if (accessKeyId === undefined || secretAccessKey === undefined || token === undefined) {
    throw new DeliveryError('token_unreadable', 'the response of AWS contains no session that can be used')
  }
  return { accessKeyId, secretAccessKey, token, expiresAt: expiresAt ?? new Date(requestedAt + shortestMs) }
}
