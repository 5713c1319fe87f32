import { join } from 'node:path'
import { dayAfter } from '../../src/base/day.ts'
import { exportProof } from '../../src/cli/proof.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { inShell } from './openssl.ts'
import { arrange, db, linesOf, makeManifests, url, verifySignature } from './scene.ts'

test('after a restore by pg_dump and pg_restore, the chain goes on and says where the database became another one', async () => {
  await using folder = await createFolder()
  const { workspace, workspaceId, receive, stored, exportAll } = await arrange()
  await receive()
  await makeManifests(2)
  const [dump, before] = [join(folder.path, 'relay.dump'), await stored()]
  const pg = (program: string) => `"${join(process.env.TEST_POSTGRES_DIR!, program)}"`
  expect(await inShell(folder.path, `${pg('pg_dump')} --format=custom --file=${dump} '${url}'`)).toMatchObject({ ok: true })
  // A day is closed after the backup, and exported.
  await makeManifests(3)
  const days = await exportAll(join(folder.path, 'exported'))
  const lostDay = days.at(-1)!

  await using other = await createTestDatabase()
  await other.db.raw('drop schema public cascade; create schema public')
  const restore = await inShell(folder.path, `${pg('pg_restore')} --no-owner --dbname='${other.url}' ${dump}`)
  expect(restore).toEqual({ ok: true, output: '' })
  const restored = () =>
    other.db('manifests').where({ workspace_id: workspaceId }).orderBy('manifests.day').select(db.raw('manifests.day::text'), 'sha256')
  expect(await restored()).toEqual(before.map(({ day, sha256 }) => ({ day, sha256 })))
  expect(await makeManifests(4, {}, other.db)).toMatch(/^2 manifests made/)
  expect((await restored()).map(({ day }) => day)).toEqual([...days, dayAfter(lostDay)])
  const after = join(folder.path, 'after')
  for (const { day } of await restored()) await exportProof(other.db, testConfig(), { workspace, day, folder: after })
  const headers = await Promise.all([...days, dayAfter(lostDay)].map(async (day) => (await linesOf(after, day))[0]!))
  expect(headers.map((header) => header['database_changed'])).toEqual([...days.map((day) => day === lostDay), false])
  const last = before.at(-1)!
  expect(headers.at(-2)).toMatchObject({ previous: { day: last.day, sha256: last.sha256.toString('hex') } })
  for (const day of days) expect(await inShell(after, verifySignature(day))).toMatchObject({ ok: true })
  // Who has exported the day of before sees that the next one names another.
  const { output } = await inShell(join(folder.path, 'exported'), `sha256sum ${lostDay}.jsonl`)
  expect(headers.at(-1)!['previous'].sha256).not.toBe(output.split(' ')[0])
})
