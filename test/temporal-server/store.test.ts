import { serverConfiguration } from '../../src/temporal-server/configuration.ts'
import { dynamicConfigFile } from '../../src/temporal-server/dynamic-config.ts'
import { datastore, storeOf, toolVariables } from '../../src/temporal-server/store.ts'

const of = (url: string, isPooled = false) => storeOf({ DATABASE_URL: url, DATABASE_TRANSACTION_POOLING: isPooled })

test.each([
  ['postgres://relay:x@db.example:5433/relay', { host: 'db.example', port: '5433', user: 'relay', password: 'x', database: 'relay' }],
  ['postgres://relay@[::1]/relay', { host: '::1', port: '5432', password: '' }],
  ['postgres://re%40lay:p%2Fa%25@db/re%20lay', { user: 're%40lay', password: 'p/a%', database: 're%20lay' }],
])('%s leads Temporal to the same database', (url, expected) => {
  expect(of(url)).toMatchObject(expected)
})

test.each([
  ['postgres://r:x@db/relay', { sslmode: 'disable' }],
  ['postgres://r:x@db/relay?sslmode=verify-full', { sslmode: 'verify-full' }],
  ['postgres://r:x@db/relay?sslmode=no-verify', { sslmode: 'require' }],
  ['postgres://r@/relay?host=/var/run/postgresql', { sslmode: 'disable', host: '/var/run/postgresql', port: '5432' }],
  // Temporal would send a plus sign for the blank.
  ['postgres://r:a%20b@db/relay', { password: 'a b' }],
])('%s gives Temporal what its driver calls otherwise', (url, attributes) => {
  expect(of(url).attributes).toMatchObject(attributes)
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

test('a database that is missing, or behind a pooler, is refused with what to do', () => {
  expect(() => storeOf({ DATABASE_URL: undefined, DATABASE_TRANSACTION_POOLING: false })).toThrow('RELAY_TEMPORAL=local needs DATABASE_URL')
  expect(() => of('postgres://r@db/relay', true)).toThrow('Let DATABASE_URL lead to PostgreSQL itself')
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
