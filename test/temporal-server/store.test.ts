import { fileURLToPath } from 'node:url'
import { serverConfiguration } from '../../src/temporal-server/configuration.ts'
import { dynamicConfigFile } from '../../src/temporal-server/dynamic-config.ts'
import { datastore, storeOf, toolVariables } from '../../src/temporal-server/store.ts'

const of = (url: string, isPooled = false) => storeOf({ DATABASE_URL: url, DATABASE_TRANSACTION_POOLING: isPooled })

// What Temporal makes of it was compared with what `pg` connects to by pgx itself; one-machine.release.test.ts connects.
test.each([
  ['postgres://relay:x@db.example:5433/relay', { host: 'db.example', port: '5433', user: 'relay', password: 'x', database: 'relay' }],
  ['postgres://relay@[::1]/relay', { host: '::1', port: '5432', password: '' }],
  ['postgres://re%40lay:p%2Fa%25@db/re%20lay', { user: 're%40lay', password: 'p/a%', database: 're%20lay' }],
  // `pg` leaves %3F as it is in the name of a database, and decodes it elsewhere.
  ['postgres://re%3Fl:p%3Fa%23b%40c%3Ad@db/re%3Flay', { user: 're%3Fl', password: 'p?a#b@c:d', database: 're%253Flay' }],
  ['postgres://r:a+b%2Bc@db/a+b', { password: 'a+b+c', database: 'a%2Bb' }],
  ['postgres://r:%C3%A4@db/%C3%A4', { password: 'ä', database: '%C3%A4' }],
  [
    'postgres:///relay?host=db.example&port=5433&user=bob&password=a%26b',
    { host: 'db.example', port: '5433', user: 'bob', password: 'a&b' },
  ],
  ['socket://r:x@/run/postgresql?db=relay', { host: '127.0.0.1', database: 'relay' }],
  ['postgres://r:x@db', { database: 'r' }],
])('%s leads Temporal to the same database', (url, expected) => {
  expect(of(url)).toMatchObject(expected)
})

const ca = fileURLToPath(import.meta.url)

test.each([
  ['postgres://r:x@db/relay', { sslmode: 'disable' }],
  ['postgres://r:x@db/relay?sslmode=verify-full', { sslmode: 'verify-full' }],
  ['postgres://r:x@db/relay?sslmode=no-verify', { sslmode: 'require' }],
  ['postgres://r:x@db/relay?ssl=true', { sslmode: 'verify-full' }],
  ['postgres://r:x@db/relay?sslmode=verify-full&sslnegotiation=direct', { sslmode: 'verify-full', sslnegotiation: 'direct' }],
  [`postgres://r:x@db/relay?sslmode=verify-full&sslrootcert=${ca}`, { sslmode: 'verify-full', sslrootcert: ca }],
  // The URL has no host, so Node does not read it.
  [`postgres://r:x@/relay?host=db&sslmode=verify-full&sslrootcert=${ca}`, { sslmode: 'verify-full', sslrootcert: ca }],
  [`postgres://r:x@db/relay?uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${ca}`, { sslmode: 'verify-ca', sslrootcert: ca }],
  [`postgres://r:x@db/relay?sslmode=no-verify&sslrootcert=${ca}`, { sslmode: 'require', sslrootcert: undefined }],
  ['postgres://r@/relay?host=/var/run/postgresql', { sslmode: 'disable', host: '/var/run/postgresql', port: '5432' }],
  ['postgres://r@%2Fvar%2Frun%2Fpostgresql:5433/relay', { host: '/var/run/postgresql', port: '5433' }],
  // Temporal would send a plus sign for the blank.
  ['postgres://r:a%20b@db/relay', { password: 'a b' }],
  ['postgres://r:x@db/relay?options=-c%20role%3Downer', { options: '-c role=owner' }],
])('%s gives Temporal what its driver calls otherwise', (url, expected) => {
  const { attributes } = of(url)
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, attributes[name]]))).toEqual(expected)
})

test('each schema is the search path of its store, and the tool gets the password by its environment', () => {
  const store = of('postgres://relay:secret@[::1]:5433/relay')
  expect(datastore(store, 'temporal_visibility', 2).sql).toMatchObject({
    connectAddr: '[::1]:5433',
    connectAttributes: { search_path: 'temporal_visibility' },
  })
  const { SQL_CONNECT_ATTRIBUTES, ...variables } = toolVariables(store, 'temporal')
  expect(variables).toMatchObject({ SQL_HOST: '[::1]', SQL_PORT: '5433', SQL_PASSWORD: 'secret', SQL_DATABASE: 'relay' })
  expect(new URLSearchParams(SQL_CONNECT_ATTRIBUTES).get('search_path')).toBe('temporal')
})

test('a database that is missing, behind a pooler, or that Temporal cannot reach, is refused with a sentence', () => {
  expect(() => storeOf({ DATABASE_URL: undefined, DATABASE_TRANSACTION_POOLING: false })).toThrow('RELAY_TEMPORAL=local needs DATABASE_URL')
  expect(() => of('postgres://r@db/relay', true)).toThrow('Let DATABASE_URL lead to PostgreSQL itself')
  expect(() => of('postgres://r:a%20@db/relay')).toThrow(
    'does not work with a blank at the beginning or end of the password in DATABASE_URL',
  )
})

test('the server listens on loopback only, and its dynamic configuration is that of every server of the relay', () => {
  const ports = { grpcPort: 20_001, membershipPort: 20_002 }
  const { services, publicClient, global } = serverConfiguration(
    of('postgres://r:x@db/relay'),
    { frontend: ports, history: ports, matching: ports, worker: ports },
    '/etc/dynamic.yaml',
  )
  for (const { rpc } of Object.values(services)) expect(rpc).toEqual({ ...ports, bindOnIP: '127.0.0.1' })
  expect([publicClient.hostPort, global.membership.broadcastAddress]).toEqual(['127.0.0.1:20001', '127.0.0.1'])
  expect(JSON.parse(dynamicConfigFile(['matching.enableFairness=true', 'history.rps=100']))).toEqual({
    'matching.enableFairness': [{ value: true }],
    'history.rps': [{ value: 100 }],
  })
})
