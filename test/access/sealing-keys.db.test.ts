import { randomBytes } from 'node:crypto'
import { createSealedCredentials, rotateKeys } from '../../src/access/sealing-keys.ts'
import { rfcBoundValues } from '../../src/domain/settings.ts'
import { createKeyRing, credentialsOf, rfcCredentialsOf } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())
beforeEach(() => database.db('destinations').update({ credentials_sealed: Buffer.alloc(0) }))

const keyOf = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const [older, newer, lost] = [keyOf('2025'), keyOf('2026'), keyOf('2024')]
const both = createKeyRing([newer, older])

const config = { url: 'https://example.org/in', method: 'PUT' }
/** Returns the owner of the credentials of a webhook. */
const ownerOf = (workspaceId: string, id: string) => credentialsOf(workspaceId, id, [['url', config.url]])

/** Creates one destination per key, each with credentials sealed with that key. */
const createSealed = async (keys: string[]) => {
  const { workspaceId, destinations } = await createRoutes(
    database.db,
    keys.map((_, index) => ({ name: `destination ${index}`, config })),
  )
  const ids = keys.map((_, index) => destinations[`destination ${index}`]!)
  for (const [index, key] of keys.entries()) {
    const credentials_sealed = createKeyRing([key]).seal({ password: `secret ${index}` }, ownerOf(workspaceId, ids[index]!))
    await database.db('destinations').where({ id: ids[index] }).update({ credentials_sealed })
  }
  const sealedOf = async (id: string): Promise<Buffer> =>
    (await database.db('destinations').where({ id }).first('credentials_sealed')).credentials_sealed
  return {
    ids,
    sealedOf,
    open: async (id: string, ring = createKeyRing([newer])) => ring.open(await sealedOf(id), ownerOf(workspaceId, id)),
  }
}

describe('relay secrets rotate', () => {
  test('re-seals credentials of an older key and leaves the others unchanged', async () => {
    const { ids, open, sealedOf } = await createSealed([older, newer])
    const current = await sealedOf(ids[1]!)
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 1, unreadable: [] })
    expect(await open(ids[0]!)).toEqual({ password: 'secret 0' })
    expect(await sealedOf(ids[1]!)).toEqual(current)
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 0, unreadable: [] })
  })

  test('re-seals the credentials of a bridge, unless its address was changed in the database', async () => {
    const rfc = { url: 'https://erp.example', client: '100', ca_certificate: 'PEM' }
    const create = async (settings: { rfc: object }) => {
      const { workspaceId } = await createRoutes(database.db, [], { workspaceSettings: settings })
      const owner = rfcCredentialsOf(workspaceId, rfcBoundValues({ rfc }))
      const rfc_credentials_sealed = createKeyRing([older]).seal({ user: 'RELAY', password: 'secret' }, owner)
      await database.db('workspaces').where({ id: workspaceId }).update({ rfc_credentials_sealed })
      return { workspaceId, owner }
    }
    const bridge = await create({ rfc })
    const moved = await create({ rfc: { ...rfc, url: 'https://attacker.example' } })
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 1, unreadable: [moved.workspaceId] })
    const { rfc_credentials_sealed: sealed } = await database.db('workspaces').where({ id: bridge.workspaceId }).first()
    expect(createKeyRing([newer]).open(sealed, bridge.owner)).toEqual({ user: 'RELAY', password: 'secret' })
    await database.db('workspaces').update({ rfc_credentials_sealed: null })
  })

  test('processes more than one batch', async () => {
    const { ids, open } = await createSealed(Array.from({ length: 230 }, () => older))
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 230, unreadable: [] })
    expect(await open(ids[229]!)).toEqual({ password: 'secret 229' })
  })

  test('reports the ids of credentials that no key opens, and continues', async () => {
    const { ids, open } = await createSealed([lost, older])
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 1, unreadable: [ids[0]] })
    expect(await open(ids[1]!)).toEqual({ password: 'secret 1' })
  })

  test('reports credentials whose address was changed in the database', async () => {
    const { ids } = await createSealed([older])
    const elsewhere = JSON.stringify({ ...config, url: 'https://attacker.example/in' })
    await database.db('destinations').where({ id: ids[0] }).update({ config: elsewhere })
    expect(await rotateKeys(database.db, both)).toEqual({ resealed: 0, unreadable: [ids[0]] })
  })

  test('does not overwrite credentials saved while it runs', async () => {
    const { ids, sealedOf } = await createSealed([older])
    const credentials = createSealedCredentials(database.db)
    const [read] = await credentials.listSealedUnderOtherKeys('2026', undefined, 10)
    const saved = Buffer.from('saved meanwhile')
    await database.db('destinations').where({ id: ids[0] }).update({ credentials_sealed: saved })

    expect(await credentials.replace(read!, Buffer.from('resealed'))).toBe(false)
    expect(await sealedOf(ids[0]!)).toEqual(saved)
  })
})
