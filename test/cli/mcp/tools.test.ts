import { z } from 'zod'
import { shorten } from '../../../src/cli/mcp/shorten.ts'
import { tools } from '../../../src/cli/mcp/tools.ts'
import type { Json } from '../../support/client.ts'
import { readOpenApi } from '../../support/contract.ts'

const api: Json = await readOpenApi()
const resolve = (schema: Json): Json => (schema?.$ref ? api.components.schemas[schema.$ref.split('/').at(-1)] : schema)

describe.each(tools)('the tool $name', ({ method, path, input, always = {}, level, changes }) => {
  const operation = api.paths[path][method.toLowerCase()]
  const body = resolve(operation.requestBody?.content['application/json'].schema)?.properties ?? {}
  const parameters = Object.fromEntries(operation.parameters.map(({ name, schema }: Json) => [name, schema]))
  const known: Record<string, Json> = method === 'GET' ? parameters : { id: parameters['id'], ...body }

  test('takes what its operation takes, and no value more', () => {
    const properties: Record<string, Json> = z.toJSONSchema(input).properties ?? {}
    expect(Object.keys(known)).toEqual(expect.arrayContaining([...Object.keys(properties), ...Object.keys(always)]))
    for (const [name, { enum: values }] of Object.entries(properties)) {
      if (values) expect({ name, values }).toEqual({ name, values: resolve(known[name]).enum })
    }
  })

  test('names the level of its operation, and changes something only by POST', () => {
    expect(operation.description).toContain(`Required level: \`${level}\`.`)
    expect(changes !== undefined).toBe(method === 'POST')
  })
})

test('long texts and lists are cut, and the cut lists are named', () => {
  const { value, omitted } = shorten({ data: [{ note: 'a'.repeat(1_001), rows: [1, 2, 3] }], meta: null }, 2)
  expect(value).toEqual({ data: [{ note: `${'a'.repeat(1_000)} ... (1001 characters)`, rows: [1, 2] }], meta: null })
  expect(omitted).toEqual([{ list: 'data[0].rows', entries: 1 }])
})
