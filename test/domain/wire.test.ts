import { z } from 'zod'
import { inward, outward } from '../../src/domain/wire.ts'

const schema = z.object({
  repo_id: z.string(),
  sha_256: z.string().optional(),
  open_record: z.record(z.string(), z.unknown()),
  sub_items: z.array(z.object({ some_name: z.string().nullable() })),
})

test('names change both ways, and open records keep their own', () => {
  const wire = { repo_id: 'A1', open_record: { 'X-Some_Header': { deep_er: 1 } }, sub_items: [{ some_name: null }] }
  const inside = { repoId: 'A1', openRecord: { 'X-Some_Header': { deep_er: 1 } }, subItems: [{ someName: null }] }
  expect(inward(schema, wire)).toEqual(inside)
  expect(outward(schema, inside)).toEqual(wire)
})

test('what the schema does not name does not go out', () => {
  const inside = { repoId: 'A1', openRecord: {}, subItems: [], credentialsSealed: 'secret' }
  expect(outward(schema, inside)).toEqual({ repo_id: 'A1', open_record: {}, sub_items: [] })
})
