import { newId } from '../../src/base/ids.ts'
import { type Json, type Row } from './world.ts'

// Sections 4 and 4.1 of the specification: conventions of all endpoints.

const offsetLists = ['/destinations', '/repositories', '/documents']
const cursorLists = ['/requests', '/audit-logs']

const needsKey = (path: string): Row => [
  `4 GET ${path} requires authentication`,
  async ({ acme }) => expect((await acme.call('GET', path, undefined, { key: null })).status).toBe(401),
]

const hasDefaults = (path: string): Row => [
  `4.1 page defaults to 1 and per_page to 25: ${path}`,
  async ({ acme }) => {
    const { json } = await acme.call('GET', path)
    expect(json.meta).toEqual({ current_page: 1, per_page: 25, total: expect.any(Number) })
    expect(json.data.length).toBeLessThanOrEqual(25)
  },
]

const selectsRows = (path: string): Row => [
  `4.1 per_page and page select the rows of ${path}, and total counts all rows`,
  async ({ acme }) => {
    const all = await acme.call('GET', `${path}?per_page=100`)
    const second = await acme.call('GET', `${path}?per_page=1&page=2`)
    expect(second.json).toEqual({ data: [all.json.data[1]], meta: { current_page: 2, per_page: 1, total: all.json.meta.total } })
  },
]

const isEmptyAfterTheEnd = (path: string): Row => [
  `4.1 a page after the last one is empty: ${path}`,
  async ({ acme }) => {
    const { status, json } = await acme.call('GET', `${path}?page=999999&per_page=100`)
    expect({ status, data: json.data, page: json.meta.current_page }).toEqual({ status: 200, data: [], page: 999_999 })
  },
]

const hasCursor = (path: string): Row => [
  `4.1 per_page defaults to 25, meta has per_page and next_cursor: ${path}`,
  async ({ acme }) => {
    const { json } = await acme.call('GET', path)
    expect(Object.keys(json.meta).toSorted()).toEqual(['next_cursor', 'per_page'])
    expect(json.meta.per_page).toBe(25)
  },
]

const goesBackwards = (path: string): Row => [
  `4.1 before returns rows with a lower id, newest first: ${path}`,
  async ({ acme }) => {
    const first = await acme.call('GET', `${path}?per_page=1`)
    const id = first.json.data[0].id
    expect(first.json.meta.next_cursor).toBe(id)
    const { json } = await acme.call('GET', `${path}?per_page=100&before=${id}`)
    const ids: string[] = json.data.map((row: Json) => row.id)
    expect(ids.every((one) => one < id)).toBe(true)
    expect(ids).toEqual(ids.toSorted().toReversed())
  },
]

const endsWithoutCursor = (path: string): Row => [
  `4.1 next_cursor is null when no rows remain: ${path}`,
  async ({ acme }) => {
    const { json } = await acme.call('GET', `${path}?before=00000000000000000000000000`)
    expect(json).toEqual({ data: [], meta: { per_page: 25, next_cursor: null } })
    const first = await acme.call('GET', `${path}?per_page=100`)
    if (first.json.data.length < 100) expect(first.json.meta.next_cursor).toBeNull()
    else expect(first.json.meta.next_cursor).toBe(first.json.data[99].id)
  },
]

const boundsPerPage = (path: string): Row => [
  `4.1 per_page of 100 is accepted; over 100 and under 1 are 400: ${path}`,
  async ({ acme }) => {
    expect(await acme.statusOf('GET', `${path}?per_page=100`)).toBe(200)
    for (const wrong of ['101', '0', '-1', 'x', '1.5', '']) expect(await acme.statusOf('GET', `${path}?per_page=${wrong}`)).toBe(400)
  },
]

const refusesOtherCursors = (path: string): Row => [
  `4.1 page, and a before that is not a ULID, are 400: ${path}`,
  async ({ acme }) => {
    for (const query of ['before=x', 'before=', 'page=1']) expect(await acme.statusOf('GET', `${path}?${query}`)).toBe(400)
  },
]

export const conventionRows: Row[] = [
  [
    '4 every path begins with /api/{userSlug}/{workspaceSlug}',
    async ({ baseUrl, acme }) => {
      const headers = { authorization: `Bearer ${acme.keys.admin}` }
      for (const path of ['/destinations', '/api/destinations', '/api/acme/destinations']) {
        expect((await fetch(`${baseUrl}${path}`, { headers })).status).toBe(404)
      }
    },
  ],
  [
    '4 :id is the resource identifier; other spellings are not found',
    async ({ acme, specimen }) => {
      const { destinationId } = specimen
      expect(await acme.statusOf('GET', `/destinations/${destinationId}`)).toBe(200)
      for (const id of [destinationId.toLowerCase(), `${destinationId}x`, destinationId.slice(1), newId(), '%00', '☃', 'x'.repeat(4_000)]) {
        expect(await acme.statusOf('GET', `/destinations/${id}`)).toBe(404)
      }
    },
  ],
  ...[...offsetLists, ...cursorLists, '/connections', '/audit-logs.csv', '/settings', '/api-keys'].map(needsKey),
  ...offsetLists.map(hasDefaults),
  ...offsetLists.map(selectsRows),
  ...offsetLists.map(isEmptyAfterTheEnd),
  ...cursorLists.map(hasCursor),
  ...cursorLists.map(goesBackwards),
  ...cursorLists.map(endsWithoutCursor),
  ...[...offsetLists, ...cursorLists].map(boundsPerPage),
  ...cursorLists.map(refusesOtherCursors),
]
