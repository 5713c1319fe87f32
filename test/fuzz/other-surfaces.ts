import { ranges } from './api-surface.ts'
import { distort, distortJson } from './hostile-values.ts'
import type { Random } from './random.ts'
import { encoded, type FuzzRequest } from './request.ts'
import type { World } from './world.ts'

/** The functions that the double of a source system has, and one that it does not have. */
export const functions = ['Z_OK', 'Z_FAULT', 'Z_EXCEPTION', 'Z_BROKEN', 'Z_SLOW', 'ARCHIV_CONNECTION_INSERT', 'Z_FORBIDDEN']

export const bridgeRequest = (random: Random, world: World): FuzzRequest => {
  const { name, keys } = world.steady
  const called = random.chance(0.9)
    ? random.pick(functions)
    : random.pick(['', '%00', 'a/b', '%', 'Z_OK%20', 'z_ok', 'Z'.repeat(3_000), '/NS/F', '%2FNS%2FF'])
  const call = {
    imports: {
      A: random.pick(['x', 1, true, null, '<&>', '\0', 'ü', { B: 'x' }, ['x']]),
      AR_OBJECT: 'ZINVOICE',
      ARCHIV_ID: 'Z1',
      ARC_DOC_ID: 'D1',
    },
    tables: { T: [{ A: '1' }, { A: '2', B: 'ä' }] },
  }
  const json = JSON.stringify(random.chance(0.3) ? distort(random, call) : call) ?? ''
  const body = random.chance(0.15) ? distortJson(random, json) : Buffer.from(json)
  const key = random.chance(0.9) ? random.pick([keys.member, keys.admin]) : random.pick([keys.viewer, world.foreignKey, 'relay_x'])
  return {
    surface: 'bridge',
    method: random.chance(0.95) ? 'POST' : random.pick(['GET', 'PUT', 'HEAD', 'OPTIONS', 'TRACE']),
    target: `/bridge/${random.chance(0.97) ? name : 'acme/none'}/${random.chance(0.97) ? 'rfc/' : ''}${called}${random.chance(0.05) ? '?a=%00' : ''}`,
    headers: [
      ['Host', 'relay'],
      ['Authorization', `Bearer ${key}`],
      ['Content-Type', random.chance(0.95) ? 'application/json' : 'text/xml'],
      ...(random.chance(0.05) ? [['X-Relay-Hops', 'x'] as [string, string]] : []),
    ],
    body,
    isChunked: random.chance(0.1),
  }
}

export const downloadRequest = (random: Random, world: World): FuzzRequest => {
  const link = random.pick(world.links)
  const target = random.chance(0.5)
    ? link
    : random.pick([
        () => link.replace(/expires=\d/, `expires=${random.pick(['9', '-', '0x', '%00'])}`),
        () => `${link}&${random.pick(['expires=1', 'a=1', 'signature=', '%ff=1'])}`,
        () => link.slice(0, 1 + random.below(link.length - 1)),
        () => link.replace('/download/', `/download/${random.pick(['../', '/', '%2f', '%00', '😀'].map((text) => encoded(random, text)))}`),
        () => link.replace(/signature=.{5}/, 'signature=AAAAA'),
      ])()
  return {
    surface: 'download',
    method: random.chance(0.85) ? 'GET' : random.pick(['HEAD', 'POST', 'DELETE', 'OPTIONS', 'PROPFIND']),
    target,
    headers: [['Host', 'relay'], ...(random.chance(0.4) ? [['Range', random.pick(ranges)] as [string, string]] : [])],
  }
}

const reading = (random: Random): FuzzRequest['headers'] => [
  ['Host', random.chance(0.9) ? 'relay' : random.pick(['evil.example:99999', '', 'a b', '[::1', '<script>', 'a'.repeat(3_000)])],
  ...(random.chance(0.2) ? [['Accept-Encoding', random.pick(['gzip', '*;q=0', 'br'])] as [string, string]] : []),
  ...(random.chance(0.2) ? [['If-Modified-Since', random.pick(['Sun, 22 Nov 2026 00:00:00 GMT', 'soon', ''])] as [string, string]] : []),
  ...(random.chance(0.1) ? [['X-Forwarded-Proto', random.pick(['https', 'javascript', ''])] as [string, string]] : []),
]

const readingMethod = (random: Random) =>
  random.chance(0.85) ? 'GET' : random.pick(['HEAD', 'POST', 'PUT', 'OPTIONS', 'TRACE', 'PROPFIND'])

const pages = [
  '/openapi.json',
  '/docs',
  '/docs/',
  '/docs/install',
  '/docs/reference',
  '/docs/swagger-ui.css',
  '/docs/init.js',
  '/docs/..%2fpackage.json',
  '/docs/%00',
  '/docs/package.json',
  '/docs/a'.repeat(300),
]
const probes = ['/healthz', '/readyz', '/metrics', '/healthz/', '/readyz?a=%00', '/metrics?x=%', '/HEALTHZ']
const elsewhere = [
  '/',
  '//',
  '/favicon.ico',
  '/.env',
  '/%',
  '/%00',
  '/api',
  '/receiver',
  '/receiver/a',
  '/bridge/a',
  '/..//..',
  '/\xff',
  '/?',
  '/constructor',
  '/__proto__',
]

const readOf =
  (surface: FuzzRequest['surface'], targets: string[]) =>
  (random: Random): FuzzRequest => ({
    surface,
    method: readingMethod(random),
    target: random.pick(targets),
    headers: reading(random),
  })

export const referenceRequest = readOf('reference', pages)
export const probeRequest = readOf('probes', probes)
export const strayRequest = readOf('elsewhere', elsewhere)
