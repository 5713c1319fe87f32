import { readOpenApi } from '../../support/contract.ts'

// The examples tell one story: what one of them says is true in the others. That they match their schemas: portable.test.ts.

type Json = Record<string, unknown>

const { paths, webhooks } = await readOpenApi()

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns an example and all objects in it. */
const objectsIn = (value: unknown): Json[] => {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  return isObject(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : []
}

const examplesIn = (description: unknown): unknown[] =>
  objectsIn(description).flatMap((node) => ('schema' in node && 'example' in node && !('in' in node) ? [node['example']] : []))

/** Returns the example of the answer of an operation, as a client reads it. */
const answerOf = (method: string, path: string) => {
  const responses = Object.entries(paths[path]![method]!.responses).filter(([status]) => status.startsWith('2'))
  return JSON.parse(JSON.stringify(examplesIn(responses)[0]))
}

const examples = [...examplesIn(paths), ...examplesIn(webhooks)]
const objects = examples.flatMap(objectsIn)
const connections = objectsIn(answerOf('get', '/connections')).filter((one) => 'repositories' in one)

/** The ids of the resources, by their type. */
const ids = Object.fromEntries(
  Object.entries(
    Object.groupBy(
      objects.filter((one) => 'attributes' in one),
      (one) => String(one['type']),
    ),
  ).map(([type, ofType]) => [type, new Set(ofType!.map(({ id }) => id))]),
)
ids['connection'] = new Set(connections.map(({ id }) => id))

const typeOf: Record<string, string> = {
  bulk_retry_id: 'bulk_retry',
  certificate_id: 'certificate',
  connection_id: 'connection',
  destination_id: 'destination',
  destination_ids: 'destination',
  home_destination_id: 'destination',
  document_id: 'document',
  document_ids: 'document',
  enrichment_id: 'enrichment',
  replay_of: 'captured_request',
  repository_id: 'repository',
  repository_ids: 'repository',
  request_id: 'captured_request',
  workspace_id: 'settings',
}

test('every id that an example refers to is that of a resource of another example', () => {
  const references = objects
    .flatMap((one) => Object.entries(one))
    .flatMap(([name, value]) => (name in typeOf ? [value].flat().map((id) => [name, id] as const) : []))
    .filter(([, id]) => id !== null)
  expect(references.length).toBeGreaterThan(50)
  expect(references.filter(([name, id]) => !ids[typeOf[name]!]?.has(id))).toEqual([])
  expect(new Set(references.map(([name]) => name))).toEqual(new Set(Object.keys(typeOf).filter((name) => name !== 'connection_id')))
})

test('a path has the id of the resource that its answer shows', () => {
  const paired = Object.entries(paths).flatMap(([path, methods]) =>
    /^\/[\w-]+\/\{id\}$/.test(path) && 'get' in methods
      ? [[path, methods['get'].parameters.find(({ name }) => name === 'id')!.example, answerOf('get', path).data.id]]
      : [],
  )
  expect(paired.length).toBeGreaterThan(8)
  expect(paired.filter(([, parameter, answered]) => parameter !== answered)).toEqual([])
})

test('a resource has the same name wherever it occurs', () => {
  const named = objects.flatMap((one) => {
    const attributes = isObject(one['attributes']) ? one['attributes'] : one
    return [
      ...(typeof one['id'] === 'string' && typeof attributes['name'] === 'string' ? [[one['id'], attributes['name']]] : []),
      ...(typeof one['destination_id'] === 'string' && typeof one['destination_name'] === 'string'
        ? [[one['destination_id'], one['destination_name']]]
        : []),
    ]
  })
  const names = Object.groupBy(named, ([id]) => id!)
  expect(
    Object.values(names)
      .map((pairs) => [...new Set(pairs!.map(([, name]) => name))])
      .filter(({ length }) => length > 1),
  ).toEqual([])
})

test('the document is the same wherever it occurs', () => {
  // A manifest is a file of its own.
  const others = objects.filter((one) => !('is_stamped' in one))
  for (const name of ['doc_id', 'comp_id', 'repo_id', 'size_bytes'])
    expect([name, [...new Set(others.flatMap((one) => (name in one ? [one[name]] : [])))]]).toEqual([name, [expect.anything()]])
})

test('the delivery fails, is retried in bulk and succeeds, in all examples alike', () => {
  const { deliveries, received_at: receivedAt } = answerOf('get', '/documents/{id}').data.attributes
  const [failed, delivered] = answerOf('get', '/documents/{id}/attempts').data.map(({ attributes }: Json) => attributes)
  const [group] = answerOf('get', '/failures').data.map(({ attributes }: Json) => attributes)
  const retry = answerOf('get', '/bulk-retries/{id}').data.attributes
  const notice = answerOf('get', '/notifications/{id}/notices').data[0].attributes
  const events = answerOf('get', '/events').data.map(({ attributes }: Json) => attributes)
  const event = (name: string) => events.find((one: Json) => one['event'] === name)
  const endOf = ({ started_at: start, duration_ms: duration }: { started_at: string; duration_ms: number }) =>
    new Date(Date.parse(start) + duration).toISOString()

  expect(deliveries).toMatchObject([{ status: 'delivered', attempts: delivered.number, delivered_at: endOf(delivered) }])
  expect(group).toMatchObject({ error_code: failed.error.code, last_message: failed.error.message, newest_at: endOf(failed) })
  expect(retry.filter).toMatchObject({ destination_id: failed.destination_id, error_code: failed.error.code })
  expect(retry.matched_documents).toBe(group.documents)
  expect(retry.retried_documents + retry.skipped_documents).toBe(retry.matched_documents)
  expect(retry.delivered_deliveries + retry.failed_deliveries + retry.open_deliveries).toBe(retry.retried_deliveries)
  expect(notice.data).toMatchObject({ error: failed.error, count: group.documents, opened_at: endOf(failed) })
  expect(notice.data.destination.id).toBe(failed.destination_id)
  expect(event('document.received').created_at).toBe(receivedAt)
  expect(event('delivery.failed')).toMatchObject({ created_at: endOf(failed), data: { error_code: failed.error.code } })
  expect(event('delivery.delivered')).toMatchObject({ created_at: endOf(delivered), data: { attempts: delivered.number } })
  expect(answerOf('get', '/stats').data.attributes).toMatchObject({
    documents: { delivered: 1, failed: 0 },
    attempts: { delivered: 1, permanent: 1 },
    series: [{ received: 1, delivered: 1, failed: 1 }],
    errors: [{ code: failed.error.code, attempts: 1 }],
    latency: { p50_ms: Date.parse(endOf(delivered)) - Date.parse(receivedAt) },
  })
})

test('what ends ends after its beginning, and a list with one page has as many rows as its total', () => {
  const spans = [
    ['created_at', 'updated_at'],
    ['created_at', 'ended_at'],
    ['created_at', 'delivered_at'],
    ['received_at', 'delivered_at'],
    ['received_at', 'status_since'],
    ['opened_at', 'closed_at'],
    ['request_at', 'response_at'],
    ['valid_from', 'valid_to'],
    ['date_from', 'date_to'],
  ] as const
  const wrong = objects.flatMap((one) =>
    spans
      .filter(([from, to]) => typeof one[from] === 'string' && typeof one[to] === 'string' && one[from] > one[to])
      .map((span) => [span, one]),
  )
  expect(wrong).toEqual([])
  const pages = objects.filter((one) => Array.isArray(one['data']) && isObject(one['meta']) && 'total' in one['meta'])
  expect(pages.length).toBeGreaterThan(10)
  expect(pages.filter((one) => (one['data'] as unknown[]).length !== (one['meta'] as Json)['total'])).toEqual([])
  const { data, meta } = answerOf('get', '/events')
  const order = data.map(({ id }: Json) => id)
  expect(order).toEqual(order.toSorted())
  expect(meta.next_cursor >= order.at(-1)).toBe(true)
})
