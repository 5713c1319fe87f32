import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isChangeable, personOf, type SignInSettings } from '../../src/access/people.ts'
import { readSignInSettings } from '../../src/app/sign-in-file.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'

const folder = share(await createFolder())
const path = join(folder.path, 'oidc.yaml')

const file = {
  name: 'Example Corp',
  issuer: 'https://id.example/realms/corp',
  client_id: 'relay',
  client_secret: { env: 'OIDC_SECRET' } as object,
  access: [
    { value: 'clerks', workspace: 'acme/prod', level: 'viewer' },
    { value: 'clerks', workspace: 'acme/test', level: 'member' },
    { value: 'operators', workspace: 'acme/prod', level: 'admin' },
    { value: 'owners', workspace: 'other/prod', level: 'admin' },
  ] as object[],
}

const read = async (change: object | string = {}, variables: NodeJS.ProcessEnv = { OIDC_SECRET: 'hunter2' }) => {
  await writeFile(path, typeof change === 'string' ? change : JSON.stringify({ ...file, ...change }))
  return readSignInSettings(path, variables)
}

describe('the file of RELAY_OIDC_FILE', () => {
  test('is read with its secret and its defaults', async () => {
    expect(await read()).toMatchObject({
      name: 'Example Corp',
      provider: {
        issuer: 'https://id.example/realms/corp',
        clientId: 'relay',
        clientSecret: 'hunter2',
        scopes: ['openid', 'profile', 'email'],
        claim: 'groups',
        caCertificate: undefined,
      },
      rules: [{ value: 'clerks', userSlug: 'acme', workspaceSlug: 'prod', level: 'viewer' }, {}, {}, {}],
    })
  })

  test('may be YAML, with the secret in a file beside it', async () => {
    await writeFile(join(folder.path, 'secret'), 'of the file\n')
    const yaml = `
name: Example Corp
issuer: https://id.example
client_id: relay
client_secret: { file: secret }
claim: roles
access:
  - { value: DocumentRelay.Admin, workspace: acme/prod, level: admin }
`
    expect(await read(yaml)).toMatchObject({ provider: { clientSecret: 'of the file', claim: 'roles' }, rules: [{ level: 'admin' }] })
  })

  test.each([
    ['another key', { redirect_uri: 'x' }, 'contains unknown keys: redirect_uri'],
    ['an issuer without TLS', { issuer: 'http://id.example' }, 'issuer must be a URL that begins with https://'],
    ['an issuer with a query', { issuer: 'https://id.example/?x=1' }, 'issuer must be a URL'],
    ['a secret instead of a reference', { client_secret: 'hunter2' }, 'client_secret must be { env: NAME } or { file: PATH }'],
    ['a secret that is missing', { client_secret: { env: 'NOT_SET' } }, 'client_secret: the environment variable NOT_SET is not set'],
    ['a secret file that is missing', { client_secret: { file: 'no-such' } }, 'client_secret: the file no-such cannot be read (ENOENT)'],
    ['no scope openid', { scopes: ['email'] }, 'scopes must contain openid'],
    ['nobody who may do anything', { access: [] }, 'access must not be empty'],
    ['an unknown level', { access: [{ value: 'a', workspace: 'a/b', level: 'root' }] }, 'access.0.level must be one of'],
    ['no workspace', { access: [{ value: 'a', workspace: 'prod', level: 'admin' }] }, 'access.0.workspace must be user/workspace'],
    ['no authority', { ca_certificate: 'x' }, 'ca_certificate must be a PEM certificate'],
    ['nothing', '', 'is invalid: the file must be an object'],
    ['no YAML', 'name: "hunter2', 'is not valid YAML'],
    ['an alias without an anchor', 'name: *b', 'has an alias without an anchor'],
  ])('is refused with %s, and the message contains no secret', async (_, change, message) => {
    const refused = await read(change).catch((thrown: unknown) => thrown)
    expect(refused).toMatchObject({ name: 'UserError', message: expect.stringContaining(message) as string })
    expect((refused as Error).message).toContain('RELAY_OIDC_FILE')
    expect((refused as Error).message).not.toContain('hunter2')
  })

  test('is refused if it does not exist', async () => {
    await expect(readSignInSettings(join(folder.path, 'none.yaml'))).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringContaining('cannot be read') as string,
    })
  })
})

describe('the person of claims', () => {
  const accessOf = (settings: SignInSettings, groups: unknown) => {
    const person = personOf({ sub: 'P1', groups }, settings)
    return person?.rules.map((id) => {
      const { userSlug, workspaceSlug, level } = settings.rules.find((rule) => rule.id === id)!
      return `${userSlug}/${workspaceSlug} ${level}`
    })
  }

  test.each([
    ['one group', ['clerks'], ['acme/prod viewer', 'acme/test member']],
    ['several groups: the highest level of each workspace', ['clerks', 'operators', 'x'], ['acme/prod admin', 'acme/test member']],
    ['a claim that is a text', 'owners', ['other/prod admin']],
    ['a group that is written differently', ['Clerks', ' clerks', 'clerk'], []],
    ['no such claim', undefined, []],
    ['an empty claim', [], []],
    ['null', null, []],
    ['values that are no texts', [1, null, { value: 'clerks' }, ['clerks']], []],
  ])('has the access of %s', async (_, groups, access) => {
    expect(accessOf(await read(), groups)).toEqual(access)
  })

  test('has at most 100 workspaces, so that the session fits into a cookie', async () => {
    const access = Array.from({ length: 150 }, (_, index) => ({ value: 'many', workspace: `acme/w${index}`, level: 'viewer' }))
    expect(accessOf(await read({ access }), ['many'])).toHaveLength(100)
  })

  test.each([
    [{ email: 'ada@example.com', preferred_username: 'ada' }, 'ada'],
    [{ email: 'ada@example.com', email_verified: 'true', preferred_username: 'ada' }, 'ada'],
    [{ email: 'ada@example.com', email_verified: true }, 'ada@example.com'],
    [{ email: 'boss@example.com', email_verified: false, preferred_username: 'ada' }, 'ada'],
    [{ email: ' \u0000\n', email_verified: true, name: 'Ada\u0007 Lovelace' }, 'Ada Lovelace'],
    [{ email: 7, email_verified: true, preferred_username: '\ud800' }, 'P1'],
    [{ name: 'x'.repeat(300) }, 'x'.repeat(200)],
    [{}, 'P1'],
  ])('is named by the first usable claim of %j', async (claims, name) => {
    expect(personOf({ sub: 'P1', ...claims }, await read())?.name).toBe(name)
  })

  test.each([
    [{ email: 'clerks', email_verified: true }, 2],
    [{ email: 'clerks' }, 0],
    [{ email: 'clerks', email_verified: false }, 0],
    [{ email: 'clerks', email_verified: 'true' }, 0],
    [{ email: 'clerks', email_verified: 1 }, 0],
    [{ email: ['clerks'], email_verified: true }, 0],
    [{ email_verified: true, preferred_username: 'clerks' }, 0],
  ])('has access by its address only if the provider has verified it: %j', async (claims, workspaces) => {
    const person = personOf({ sub: 'P1', ...claims }, await read({ claim: 'email' }))
    expect(person?.rules).toHaveLength(workspaces)
    expect(person?.email).toBe(workspaces === 0 ? undefined : 'clerks')
  })

  test.each([
    ['groups', false],
    ['roles', false],
    ['sub', false],
    ['oid', false],
    ['https://example.com/groups', false],
    ['email', true],
    ['preferred_username', true],
    ['upn', true],
    ['name', true],
    ['https://example.com/email', true],
  ])('is known by a claim that may become that of another person: %s %s', (claim, isOne) => {
    expect(isChangeable(claim)).toBe(isOne)
  })

  test.each(['', 'x'.repeat(256), 'Größe', 'a\u0000'])('is nobody with the subject %j', async (sub) => {
    expect(personOf({ sub }, await read())).toBeUndefined()
  })

  test('gets rules with other ids from another issuer, claim, value, workspace or level', async () => {
    const ids = async (change: object) => (await read({ access: file.access.slice(0, 1), ...change })).rules.map(({ id }) => id)
    const [rule] = file.access
    const found: string[] = []
    for (const change of [
      {},
      { issuer: 'https://other.example' },
      { claim: 'roles' },
      ...[{ value: 'x' }, { workspace: 'acme/x' }, { level: 'admin' }].map((changed) => ({ access: [{ ...rule, ...changed }] })),
    ]) {
      found.push(...(await ids(change)))
    }
    expect(new Set(found).size).toBe(6)
    expect(await ids({ name: 'Other name', client_id: 'other' })).toEqual([found[0]])
  })
})
