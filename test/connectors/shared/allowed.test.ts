import { connectorTypes, createConnectors } from '../../../src/connectors/index.ts'
import type { AllowLists } from '../../../src/connectors/shared/allowed.ts'

const role = 'arn:aws:iam::123456789012:role/documents'
const tokenFile = '/var/run/secrets/tokens/acme/first/token'
const entra = { tenant_id: 'acme.example', client_id: 'relay', federated_token_file: tokenFile }
const federation = {
  type: 'external_account',
  audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/relay/providers/cluster',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  credential_source: { file: tokenFile },
}

/** Each field whose values the operator allows: a target that uses it, the path of the field, and what allows it. */
const fields: [kind: string, target: { config?: object; credentials?: object }, path: string, list: keyof AllowLists, value: string][] = [
  ['directory', { config: { path: '/srv/acme/first/in' } }, 'config.path', 'RELAY_DIRECTORY_ROOTS', '/srv/acme/first'],
  ['objstore', { credentials: { role_arn: role } }, 'credentials.role_arn', 'RELAY_S3_ROLES', role],
  ...(
    [
      ['objstore', { federated_token_file: tokenFile }, 'federated_token_file'],
      ['blob', entra, 'federated_token_file'],
      ['teamsite', entra, 'federated_token_file'],
      ['email', entra, 'federated_token_file'],
      ['drive', { external_account: federation }, 'external_account.credential_source.file'],
    ] as const
  ).map(
    ([kind, credentials, path]) =>
      [kind, { credentials }, `credentials.${path}`, 'RELAY_TOKEN_FILE_ROOTS', '/var/run/secrets/tokens/acme/first'] as [
        string,
        { credentials: object },
        string,
        keyof AllowLists,
        string,
      ],
  ),
]

const refusalsOf = (kind: string, lists: Partial<AllowLists>, target: object, workspace: string) =>
  createConnectors(lists).find(kind)!.notAllowed!(target, workspace)

describe.each(fields)('%s, %j: %s', (kind, target, path, list, value) => {
  test('is allowed to every workspace, to one, or to each what bears its name', () => {
    const lists: [Partial<AllowLists>, string[]][] = [
      [{ [list]: [{ value }] }, ['acme/first', 'other/first']],
      [{ [list]: [{ workspace: 'acme/first', value }] }, ['acme/first']],
      [
        { [list]: [{ value: value.replace('acme/first', '{workspace}') }] },
        list === 'RELAY_S3_ROLES' ? ['acme/first', 'other/first'] : ['acme/first'],
      ],
    ]
    for (const [allowed, workspaces] of lists) {
      for (const workspace of ['acme/first', 'other/first', 'acme/firs', 'acme/first2']) {
        const expected =
          workspaces.includes(workspace) || workspaces.includes('other/first') ? [] : [{ path, message: expect.stringContaining(list) }]
        expect([workspace, refusalsOf(kind, allowed, target, workspace)]).toEqual([workspace, expected])
      }
    }
  })

  test('is refused with the name of the variable if nothing is allowed', () => {
    expect(refusalsOf(kind, {}, target, 'acme/first')).toEqual([{ path, message: expect.stringContaining(`no `) }])
    expect(refusalsOf(kind, {}, target, 'acme/first')[0]!.message).toContain(list)
  })
})

test('no other field of a kind names a file or a directory of the machine, or a role', () => {
  const marked = connectorTypes.map((kind) => {
    const { config, credentials } = createConnectors().find(kind)!
    return [
      kind,
      [config, credentials].flatMap((schema) => markedIn(schema.toJSONSchema({ io: 'output', unrepresentable: 'any' }) as Node)),
    ]
  })
  expect(Object.fromEntries(marked)).toEqual(
    Object.fromEntries(
      connectorTypes.map((kind) => [kind, fields.filter((field) => field[0] === kind).map((field) => field[2].replace(/^\w+\./, ''))]),
    ),
  )
  for (const kind of connectorTypes) {
    const { config, credentials } = createConnectors().find(kind)!
    for (const schema of [config, credentials]) {
      const { properties = {} } = schema.toJSONSchema({ io: 'output', unrepresentable: 'any' }) as Node
      // `part_file` is a file at the target, below the folder of the destination.
      const ofTheMachine = Object.keys(properties).filter((name) => /_file$|_arn$/.test(name) && name !== 'part_file')
      for (const name of ofTheMachine)
        expect([kind, name, properties[name]]).toEqual([kind, name, expect.objectContaining({ 'x-allowed-by': expect.any(String) })])
    }
  }
})

interface Node {
  'x-allowed-by'?: string
  properties?: Record<string, Node>
}

const markedIn = (node: Node, path: string[] = []): string[] => [
  ...(node['x-allowed-by'] === undefined ? [] : [path.join('.')]),
  ...Object.entries(node.properties ?? {}).flatMap(([name, child]) => markedIn(child, [...path, name])),
]
