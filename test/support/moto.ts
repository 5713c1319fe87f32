import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../src/programs/ports.ts'
import { findProgram } from '../../src/programs/programs.ts'
import { startServer } from './server-program.ts'

export interface Moto extends AsyncDisposable {
  port: number
  endpoint: string
  /** The account that owns everything. */
  account: string
  /** The identity that may assume the roles of `trusted`. */
  relay: { accessKeyId: string; secretAccessKey: string }
  /** Sends a request of AWS's query protocol, by its parameters. @returns the answer */
  query(service: string, parameters: Record<string, string>): Promise<string>
  stop(): Promise<void>
}

const region = 'us-east-1'
// Not checked before the server demands signatures.
const authorizationFor = (service: string) =>
  `AWS4-HMAC-SHA256 Credential=set-up/20261129/${region}/${service}/aws4_request, SignedHeaders=host, Signature=0`

/**
 * Starts moto with IAM, STS and S3. Once set up, it checks signatures and session tokens, and whether a policy allows the request. It does not
 * evaluate the trust policies of roles.
 * @param buckets are created
 * @param roles what each role may do: actions and resources, by its name
 * @param assumable the names of the roles that the identity of the relay may assume
 */
export const startMoto = async (
  buckets: readonly string[],
  roles: Record<string, { actions: string[]; resources: string[] }>,
  assumable: readonly string[],
): Promise<Moto> => {
  const packages = process.env['TEST_MOTO_DIR']
  if (!packages) throw new Error('TEST_MOTO_DIR is not set: the set-up of the tests could not install moto')
  const python = await findProgram('python3', process.env['PATH'])
  const folder = await mkdtemp(join(tmpdir(), 'relay-moto-'))
  const port = await findFreePort()
  const server = await startServer(python!, ['-m', 'moto.server', '--host', '127.0.0.1', '--port', String(port)], {
    name: 'moto',
    port,
    logFile: join(folder, 'log'),
    env: { PYTHONPATH: packages },
  })
  const endpoint = `http://127.0.0.1:${port}`
  const query = async (service: string, parameters: Record<string, string>): Promise<string> => {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { authorization: authorizationFor(service), 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ Version: service === 'iam' ? '2010-05-08' : '2011-06-15', ...parameters }).toString(),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`moto answered ${response.status}: ${text}`)
    return text
  }
  const account = '123456789012'
  const policyOf = (Action: string[], Resource: string[]) =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource }] })

  for (const bucket of buckets) {
    await fetch(`${endpoint}/${bucket}`, { method: 'PUT', headers: { authorization: authorizationFor('s3') } })
  }
  for (const [RoleName, { actions, resources }] of Object.entries(roles)) {
    await query('iam', { Action: 'CreateRole', RoleName, AssumeRolePolicyDocument: policyOf(['sts:AssumeRole'], ['*']) })
    await query('iam', { Action: 'PutRolePolicy', RoleName, PolicyName: 'writes', PolicyDocument: policyOf(actions, resources) })
  }
  await query('iam', { Action: 'CreateUser', UserName: 'relay' })
  const arns = assumable.map((name) => `arn:aws:iam::${account}:role/${name}`)
  await query('iam', {
    Action: 'PutUserPolicy',
    UserName: 'relay',
    PolicyName: 'assumes',
    PolicyDocument: policyOf(['sts:AssumeRole'], arns),
  })
  const keys = await query('iam', { Action: 'CreateAccessKey', UserName: 'relay' })
  const textOf = (element: string) => new RegExp(`<${element}>([^<]+)<`).exec(keys)![1]!
  const relay = { accessKeyId: textOf('AccessKeyId'), secretAccessKey: textOf('SecretAccessKey') }
  await fetch(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body: '0' })

  const stop = async () => {
    await server.stop()
    await rm(folder, { recursive: true })
  }
  return { port, endpoint, account, relay, query, stop, [Symbol.asyncDispose]: stop }
}
