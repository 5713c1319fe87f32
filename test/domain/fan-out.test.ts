import { connectionSettings } from '../../src/domain/connection-settings.ts'
import { pathOfManifest, pathSegment, planDeliveries, type RoutedDocument, type Route } from '../../src/domain/fan-out.ts'

const document: RoutedDocument = {
  repoId: 'Z1',
  docId: 'D1',
  compId: 'data',
  contentType: 'application/pdf; version=1.7',
  sizeBytes: 100,
  erpObjectType: null,
  erpObjectId: null,
  arObject: null,
  fileName: null,
  description: null,
  fields: {},
  receivedAt: new Date('2026-03-02T10:15:30Z'),
}

const route = (destination: string, more: { isActive?: boolean; settings?: object; connectionId?: string } = {}): Route => ({
  connectionId: more.connectionId ?? `to ${destination}`,
  isActive: more.isActive ?? true,
  settings: connectionSettings(more.settings ?? {}),
  destination: { id: destination, name: destination, connector: 'webhook' },
})

const pathBy = (path_template: string, more: Partial<RoutedDocument> = {}) =>
  planDeliveries([route('a', { settings: { path_template } })], { ...document, ...more })[0]!.path

test.each(['2026-11-28.jsonl', '2026-11-28.p7s', '2026-11-28.pem', '2026-11-28.tsr'])(
  'no document lies where the part %s of a manifest does',
  (name) => {
    const encoded = name.replace('.', '%2E')
    const [folder] = pathOfManifest(name).split('/') as [string]
    const [docId, compId] = [name.slice(0, 10), name.slice(10)]
    const nameIn = '{doc_id}{comp_id}'
    expect(pathBy(`{repo_id}/${nameIn}`, { repoId: folder, docId, compId })).toBe(`${folder}/${encoded}`)
    expect(pathBy('{doc_id}/{comp_id}', { docId: folder, compId: name })).toBe(`${folder}/${encoded}`)
    // At a destination whose folder is around that of the copies, or is that of the copies; and where case does not matter.
    expect(pathBy('{repo_id}/{doc_id}/{comp_id}', { docId: folder, compId: name })).toBe(`Z1/${folder}/${encoded}`)
    expect(pathBy(nameIn, { docId, compId })).toBe(encoded)
    expect(pathBy('{doc_id}/{comp_id}', { docId: 'Manifests', compId: name.toUpperCase() })).toBe(`Manifests/${encoded.toUpperCase()}`)
    // Others stay as they are.
    expect(pathBy('{repo_id}/{doc_id}/{comp_id}', { repoId: folder, docId: 'D1', compId: name })).toBe(`${folder}/D1/${name}`)
  },
)

describe('fan-out', () => {
  test('plans one delivery per destination, in the order of the routes', () => {
    expect(planDeliveries([route('a'), route('b')], document)).toMatchObject([
      { destination: { id: 'a' }, status: 'pending', path: 'Z1/D1/data' },
      { destination: { id: 'b' }, status: 'pending', path: 'Z1/D1/data' },
    ])
  })

  test('plans one delivery to a destination with several routes, through the active connection', () => {
    const routes = [
      route('a', { isActive: false, connectionId: 'paused' }),
      route('a', { connectionId: 'open' }),
      route('a', { connectionId: 'late' }),
    ]
    expect(planDeliveries(routes, document)).toMatchObject([{ connectionId: 'open', status: 'pending' }])
  })

  test('a field named constructor is not known before it is found, in filters and in paths', () => {
    const filtered = route('a', {
      settings: { filter: { fields: { constructor: ['x'] } }, path_template: '{meta.constructor}/{doc_id}/{comp_id}' },
    })
    expect(planDeliveries([filtered], document)).toEqual([])
    expect(planDeliveries([filtered], document, false)).toMatchObject([{ isDecided: false, path: 'unknown/D1/data' }])
    expect(planDeliveries([filtered], { ...document, fields: { constructor: 'x' } })).toMatchObject([
      { isDecided: true, path: 'x/D1/data' },
    ])
  })

  test('holds a delivery if its only connection is inactive', () => {
    expect(planDeliveries([route('a', { isActive: false })], document)).toMatchObject([{ status: 'held' }])
  })

  test.each([
    [{ content_types: ['application/pdf'] }, true],
    [{ content_types: ['Application/PDF'] }, true],
    [{ content_types: ['image/png'] }, false],
    [{ comp_ids: ['data', 'data1'] }, true],
    [{ comp_ids: ['note'] }, false],
    [{ min_bytes: 100, max_bytes: 100 }, true],
    [{ min_bytes: 101 }, false],
    [{ max_bytes: 99 }, false],
  ])('filter %j accepts the document: %s', (filter, passes) => {
    expect(planDeliveries([route('a', { settings: { filter } })], document)).toHaveLength(passes ? 1 : 0)
  })
})

describe('a path', () => {
  test('is built from the template of the connection', () => {
    expect(pathBy('{yyyy}/{mm}/{dd}/{ar_object}/{doc_id}-{comp_id}.{ext}')).toBe('2026/03/02/unknown/D1-data.pdf')
    expect(pathBy('{doc_id}/{comp_id}.{ext}', { compId: 'scan.TIFF', arObject: 'FIIINVOICE' })).toBe('D1/scan.TIFF.TIFF')
    expect(pathBy('{doc_id}/{comp_id}.{ext}', { contentType: 'application/x-note' })).toBe('D1/data.bin')
  })

  test('contains a placeholder in a name of the source system as it is, without filling it', () => {
    expect(pathBy('{doc_id}/{comp_id}', { docId: '{comp_id}', compId: '{ar_object}$&$1' })).toBe('{comp_id}/{ar_object}$&$1')
  })

  test.each([
    ['../../etc/passwd', '..%2F..%2Fetc%2Fpasswd'],
    ['..', '%2E%2E'],
    ['.', '%2E'],
    ['a\\b', 'a%5Cb'],
    ['a\r\nb', 'a%0D%0Ab'],
    ['a\u0000b', 'a%00b'],
    ['rtl\u202Egnp.exe', 'rtl%E2%80%AEgnp.exe'],
    ['100% sure', '100% sure'],
    ['a%2Fb', 'a%252Fb'],
    ['Rechnung Müller.pdf', 'Rechnung Müller.pdf'],
  ])('contains %j as %j: without separators or control characters, and unambiguous', (name, segment) => {
    expect(pathSegment(name)).toBe(segment)
  })

  test('a filter by fields is decided once they are known, or cannot be found any more', () => {
    const filtered = route('a', { settings: { filter: { fields: { company_code: ['1000', '1100'], erp_object_type: 'RMRP' } } } })
    const planned = (more: Partial<RoutedDocument>, isFinal: boolean) =>
      planDeliveries([filtered], { ...document, ...more }, isFinal).map(({ isDecided }) => isDecided)
    expect(planned({}, false)).toEqual([false])
    expect(planned({ fields: { company_code: '1100' } }, false)).toEqual([false])
    expect(planned({ fields: { company_code: '1100' }, erpObjectType: 'RMRP' }, false)).toEqual([true])
    expect(planned({ fields: { company_code: '2000' } }, false)).toEqual([])
    expect(planned({ fields: { company_code: '1100' }, erpObjectType: 'BKPF' }, false)).toEqual([])
    expect(planned({ fields: { company_code: '1100' } }, true)).toEqual([])
  })

  test('a connection whose filter is decided wins over one that waits for fields', () => {
    const waits = route('a', { connectionId: 'waits', settings: { filter: { fields: { company_code: '1000' } } } })
    const open = route('a', { connectionId: 'open' })
    const held = route('a', { connectionId: 'held', isActive: false })
    const winner = (...routes: Route[]) => planDeliveries(routes, document, false)[0]!.connectionId
    expect([winner(waits, open), winner(open, waits), winner(held, waits), winner(waits, held)]).toEqual(['open', 'open', 'waits', 'waits'])
  })
})
