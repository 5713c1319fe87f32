import { createOutboundGuard } from '../../src/security/outbound.ts'
import type { DoubleResponse } from '../support/double.ts'
import { startDrive } from './drive/rig.ts'
import { contextOf, failure } from './payloads.ts'
import { startTeamsite } from './teamsite/rig.ts'

// A test of a destination does what a delivery does: a target at which the test succeeds and a delivery fails is a defect.

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
const [teamsite, drive] = await Promise.all([startTeamsite(), startDrive()])
beforeEach(() => {
  teamsite.reset()
  drive.reset()
})
afterAll(async () => {
  await outbound.close()
  await Promise.all([teamsite.stop(), drive.stop()])
})

const refusal = (status: number): DoubleResponse => ({
  status,
  json: { error: { code: 'accessDenied', message: 'no', errors: [{ reason: 'forbidden' }] } },
})

describe('a test of teamsite', () => {
  const probe = () => teamsite.connector.probe(teamsite.target(), contextOf(outbound))

  test('leaves nothing, and needs the requests of a delivery', async () => {
    expect(await probe()).toMatch(/and removed it\. No file remains\.$/)
    expect([...teamsite.double.items.keys(), ...teamsite.double.sessions.keys()]).toEqual([])
    const writes = teamsite.double.requests.filter((line) => !line.startsWith('GET') && !line.endsWith('/token'))
    expect(writes.map((line) => line.replace(/ .*[/:]/, ' '))).toEqual([
      'PUT content',
      'POST createUploadSession',
      expect.stringMatching(/^PUT /) as string,
      expect.stringMatching(/^DELETE /) as string,
    ])
  })

  test.each([
    ['the content', /content$/],
    ['an upload session', /createUploadSession$/],
    ['the upload host', /^PUT \/up\//],
  ])('fails if %s is refused, and leaves nothing', async (_, match) => {
    for (const status of [403, 503]) {
      teamsite.double.faults.push({ match, response: refusal(status), times: 1 })
      await failure(probe())
      expect([...teamsite.double.items.keys()]).toEqual([])
    }
  })

  test('leaves nothing if an answer was lost', async () => {
    teamsite.double.faults.push({ match: /content$/, response: refusal(503), times: 1, isLate: true })
    await failure(probe())
    expect([...teamsite.double.items.keys()]).toEqual([])
  })

  test('says which file remains if none may be removed', async () => {
    teamsite.double.faults.push({ match: /^DELETE .*relay-probe/, response: refusal(403), times: 1 })
    expect(await probe()).toMatch(/\/From%20the%20relay\/\.relay-probe-\w+ remains, because it could not be removed: .*permission/)
  })
})

describe('a test of drive', () => {
  const probe = () => drive.connector.probe(drive.target(), contextOf(outbound))
  const folderWith = (capabilities: object): DoubleResponse => ({
    status: 200,
    json: {
      id: drive.double.folders.shared,
      mimeType: 'application/vnd.google-apps.folder',
      trashed: false,
      driveId: '0AShared',
      capabilities: { canAddChildren: true, ...capabilities },
    },
  })
  const folder = /GET .*folder-on-shared-drive$/

  test.each([
    ['the search', /^GET \/drive\/v3\/files$/],
    ['an id', /generateIds$/],
    ['an upload session', /^POST \/upload/],
    ['the upload', /^PUT \/upload/],
  ])('fails if %s is refused, and leaves nothing', async (_, match) => {
    for (const capabilities of [{ canDeleteChildren: true }, { canTrashChildren: true }, {}]) {
      drive.double.faults.push({ match: folder, response: folderWith(capabilities), times: 1 })
      drive.double.faults.push({ match, response: refusal(403), times: 1 })
      await failure(probe())
      expect(drive.double.files.size).toBe(0)
    }
  })

  test('moves its file to the trash if the account may not delete', async () => {
    drive.double.faults.push({ match: folder, response: folderWith({ canTrashChildren: true }), times: 1 })
    expect(await probe()).toMatch(/moved it to the trash\.$/)
    expect([...drive.double.files.values()]).toMatchObject([{ trashed: true }])
  })

  test('stores no file if the account may not remove it, and says what was not tried', async () => {
    drive.double.faults.push({ match: folder, response: folderWith({}), times: 1 })
    expect(await probe()).toMatch(
      /No file was stored, because the account may not remove one: that a file can be completed was not tried\.$/,
    )
    expect([drive.double.files.size, drive.double.sessions.size]).toEqual([0, 0])
    expect(drive.double.requests).toContain('PUT /upload/drive/v3/files')
  })

  test('says which file remains if it could not be removed', async () => {
    drive.double.faults.push({ match: /^DELETE \/drive/, response: refusal(403), times: 1 })
    expect(await probe()).toMatch(/https:\/\/drive\.google\.com\/file\/d\/[\w-]+\/view remains, because it could not be removed: /)
  })
})
