import { z } from 'zod'
import { toCamelCase, toSnakeCase } from '../../src/domain/casing.ts'

const schema = z.object({
  repo_id: z.string(),
  sha_256: z.string().optional(),
  open_record: z.record(z.string(), z.unknown()),
  sub_items: z.array(z.object({ some_name: z.string().nullable() })),
})

test('names are converted in both directions, except inside open records', () => {
  const snakeCased = { repo_id: 'A1', open_record: { 'X-Some_Header': { deep_er: 1 } }, sub_items: [{ some_name: null }] }
  const camelCased = { repoId: 'A1', openRecord: { 'X-Some_Header': { deep_er: 1 } }, subItems: [{ someName: null }] }
  expect(toCamelCase(schema, snakeCased)).toEqual(camelCased)
  expect(toSnakeCase(schema, camelCased)).toEqual(snakeCased)
})

test('toSnakeCase() omits properties that the schema does not name', () => {
  const camelCased = { repoId: 'A1', openRecord: {}, subItems: [], credentialsSealed: 'secret' }
  expect(toSnakeCase(schema, camelCased)).toEqual({ repo_id: 'A1', open_record: {}, sub_items: [] })
})
