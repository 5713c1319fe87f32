import { X509Certificate } from 'node:crypto'
import { createAuthority } from '../support/certificates.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { database, api, acme } = share(await startScene())
const authority = share(await createAuthority())

const issue = async (days: number) => {
  const { cert, key } = await authority.issueClient(days)
  return { client_certificate: cert, client_key: key }
}
const expiryOf = ({ client_certificate: pem }: { client_certificate: string }) => new Date(new X509Certificate(pem).validTo).toISOString()
const webhook = (credentials: object) => ({
  name: 'Partner',
  connector_type: 'webhook',
  config: { url: 'https://partner.example/documents' },
  credentials,
})

test('the client certificate of a destination is sealed, and its expiry is shown until the credentials are replaced', async () => {
  const [first, second] = [await issue(30), await issue(60)]
  const created = await acme.call('POST', '/destinations', webhook(first))
  expect(created.status).toBe(201)
  const { id, attributes } = created.json.data
  expect(attributes.credentials_expire_at).toBe(expiryOf(first))

  const change = async (body: object) => (await acme.call('PATCH', `/destinations/${id}`, body)).json.data.attributes.credentials_expire_at
  expect(await change({ credentials: second })).toBe(expiryOf(second))
  expect(await change({ config: { method: 'PUT' } })).toBe(expiryOf(second))
  expect(attributes.sign_in).toBe('none')
  expect(await change({ credentials: { bearer_token: 'a-token' } })).toBeNull()
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes.sign_in).toBe('bearer_token')

  const stored = JSON.stringify(await database.db('destinations').where({ id }).first())
  const [, body] = first.client_key.split('\n')
  for (const text of [stored, JSON.stringify(created.json), api.log.join('')]) expect(text).not.toContain(body)
})

test('a client certificate that has expired, and the key of another one, are refused when they are saved and tested', async () => {
  const [mine, other] = [await issue(30), await issue(30)]
  const mixed = webhook({ ...mine, client_key: other.client_key })
  for (const path of ['/destinations', '/destinations/test']) {
    const { status, json } = await acme.call('POST', path, path === '/destinations' ? mixed : { ...mixed, name: undefined })
    expect([status, json.error.details]).toEqual([
      422,
      [{ path: 'credentials.client_key', message: 'is not the key of the first certificate in client_certificate' }],
    ])
  }
  const expired = await acme.call('POST', '/destinations', webhook(await issue(-1)))
  expect([expired.status, expired.json.error.details]).toEqual([
    422,
    [{ path: 'credentials.client_certificate', message: expect.stringContaining('has expired on') as string }],
  ])
})
