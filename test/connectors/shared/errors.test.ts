import { z } from 'zod'
import { createConnectors } from '../../../src/connectors/index.ts'
import { secretsIn } from '../../../src/connectors/shared/errors.ts'
import { loadRigs } from '../rig.ts'

const { find: findConnector } = createConnectors()

const rigs = await loadRigs()
const samples = rigs.flatMap(({ kind, secretSamples }) =>
  secretSamples.map(([credentials, secrets]): [string, object, string[]] => [kind, credentials, secrets]),
)

test.each(samples)('of the credentials of %s only the secret strings count as secrets', (kind, credentials, secrets) => {
  const { credentials: schema } = findConnector(kind)!
  expect(secretsIn(schema, schema.parse(credentials)).toSorted()).toEqual(secrets.toSorted())
})

test('every kind with a secret in its credentials has a sample', () => {
  const hasSecret = (kind: string) => JSON.stringify(z.toJSONSchema(findConnector(kind)!.credentials)).includes('"secret":true')
  const kinds = rigs.map(({ kind }) => kind)
  expect(new Set(samples.map(([kind]) => kind))).toEqual(new Set(kinds.filter(hasSecret)))
})
