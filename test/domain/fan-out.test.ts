import { connectionSettings } from '../../src/domain/connection-settings.ts'
import { pathSegment, planDeliveries, type Arrival, type Wire } from '../../src/domain/fan-out.ts'

const arrival: Arrival = {
  repoId: 'Z1',
  docId: 'D1',
  compId: 'data',
  contentType: 'application/pdf; version=1.7',
  sizeBytes: 100,
  arObject: null,
  receivedAt: new Date('2026-03-02T10:15:30Z'),
}

const wire = (destination: string, more: { isActive?: boolean; settings?: object; connectionId?: string } = {}): Wire => ({
  connectionId: more.connectionId ?? `to ${destination}`,
  isActive: more.isActive ?? true,
  settings: connectionSettings(more.settings ?? {}),
  destination: { id: destination, name: destination, connector: 'webhook' },
})

const pathBy = (path_template: string, more: Partial<Arrival> = {}) =>
  planDeliveries([wire('a', { settings: { path_template } })], { ...arrival, ...more })[0]!.path

describe('fan-out', () => {
  it('plans one delivery a destination, in order', () => {
    expect(planDeliveries([wire('a'), wire('b')], arrival)).toMatchObject([
      { destination: { id: 'a' }, status: 'pending', path: 'Z1/D1/data' },
      { destination: { id: 'b' }, status: 'pending', path: 'Z1/D1/data' },
    ])
  })

  it('delivers once to a destination that two connections lead to, by the active one', () => {
    const wires = [
      wire('a', { isActive: false, connectionId: 'paused' }),
      wire('a', { connectionId: 'open' }),
      wire('a', { connectionId: 'late' }),
    ]
    expect(planDeliveries(wires, arrival)).toMatchObject([{ connectionId: 'open', status: 'pending' }])
  })

  it('holds what only inactive connections would forward', () => {
    expect(planDeliveries([wire('a', { isActive: false })], arrival)).toMatchObject([{ status: 'held' }])
  })

  it.each([
    [{ content_types: ['application/pdf'] }, true],
    [{ content_types: ['Application/PDF'] }, true],
    [{ content_types: ['image/png'] }, false],
    [{ comp_ids: ['data', 'data1'] }, true],
    [{ comp_ids: ['note'] }, false],
    [{ min_bytes: 100, max_bytes: 100 }, true],
    [{ min_bytes: 101 }, false],
    [{ max_bytes: 99 }, false],
  ])('filter %j lets it pass: %s', (filter, passes) => {
    expect(planDeliveries([wire('a', { settings: { filter } })], arrival)).toHaveLength(passes ? 1 : 0)
  })
})

describe('a path', () => {
  it('follows the template of its connection', () => {
    expect(pathBy('{yyyy}/{mm}/{dd}/{ar_object}/{doc_id}-{comp_id}.{ext}')).toBe('2026/03/02/unknown/D1-data.pdf')
    expect(pathBy('{doc_id}/{comp_id}.{ext}', { compId: 'scan.TIFF', arObject: 'FIIINVOICE' })).toBe('D1/scan.TIFF.TIFF')
    expect(pathBy('{doc_id}/{comp_id}.{ext}', { contentType: 'application/x-note' })).toBe('D1/data.bin')
  })

  it.each([
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
  ])('takes %j as %j: out of no folder, onto no other line, and never onto another name', (name, segment) => {
    expect(pathSegment(name)).toBe(segment)
  })
})
