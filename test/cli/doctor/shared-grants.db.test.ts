import { findSharedGrants } from '../../../src/cli/doctor/shared-grants.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createWorkspaces } from '../../../src/workspace/workspaces.ts'
import { createTestDatabase } from '../../support/database.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

const role = 'arn:aws:iam::123456789012:role/documents'
const find = (variables: Record<string, string>) => findSharedGrants({ db: database.db, config: readConfig(variables) })

test('what several workspaces share is named, and an entry for none', async () => {
  await createWorkspaces(database.db).insert('acme', 'first')
  const everyone = { RELAY_DIRECTORY_ROOTS: '/srv/archive', RELAY_TOKEN_FILE_ROOTS: '/tokens/{workspace}', RELAY_S3_ROLES: role }
  expect(await find(everyone)).toEqual([])
  await createWorkspaces(database.db).insert('acme', 'second')
  expect(await find(everyone)).toEqual([
    'RELAY_DIRECTORY_ROOTS allows /srv/archive to each of 2 workspaces.',
    `RELAY_S3_ROLES allows ${role} to each of 2 workspaces.`,
  ])
  expect(await find({ RELAY_S3_ROLES: `acme/first=${role},acme/frist=${role}` })).toEqual([
    'RELAY_S3_ROLES names acme/frist, which is no workspace.',
  ])
  expect(await find({})).toEqual([])
})
