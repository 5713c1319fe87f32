import { callTarget, type CallTargetDeps } from '../../src/connectors/call-target.ts'
import { DeliveryError } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { SealError } from '../../src/security/seal.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: [] }), (each) => each.close()))
const never = new AbortController().signal
const destination = { id: 'any', connector: 'webhook', config: { url: 'https://target.example/' } }
const stored = { workspaceId: 'any', workspace: 'acme/invoices', destination, credentialsSealed: Buffer.from('sealed') }
const minute = { timeoutMs: 60_000, cancelled: never }

const depsWith = (parts: Partial<CallTargetDeps> = {}): CallTargetDeps => ({
  findConnector: createConnectors().find,
  openCredentials: () => ({ bearer_token: 'canary' }),
  installation: { id: async () => 'this' },
  outbound,
  config: testConfig(),
  ...parts,
})

const throwing = (thrown: unknown) => (): never => {
  throw thrown
}

test('a call gets the connector, the target with its opened credentials, and a context', async () => {
  const saved: unknown[] = []
  const call = callTarget(
    depsWith(),
    stored,
    minute,
    async (connector, target, context) => {
      context.save('state')
      return [connector.kind, target, context.installationId, context.signal.aborted]
    },
    { save: (state) => void saved.push(state) },
  )
  const target = { config: expect.objectContaining(destination.config), credentials: { bearer_token: 'canary' } }
  expect(await call).toEqual(['webhook', target, 'this', false])
  expect(saved).toEqual(['state'])
})

test.each<[string, Partial<CallTargetDeps>, Partial<typeof destination>, () => Promise<never> | never, { code: string; message: string }]>([
  [
    'credentials that no key opens',
    { openCredentials: throwing(new SealError('no key')) },
    {},
    throwing(0),
    { code: 'unexpected', message: 'no key' },
  ],
  [
    'a kind that this worker does not have',
    {},
    { connector: 'fax' },
    throwing(0),
    { code: 'connector_unknown', message: 'this worker has no connector of type fax' },
  ],
  [
    'a stored config that does not fit',
    {},
    { config: { url: 'ftp://x' } },
    throwing(0),
    { code: 'config_invalid', message: expect.stringContaining('save it again') },
  ],
  [
    'a failure that the connector names',
    {},
    {},
    throwing(new DeliveryError('timeout', 'silent', { retryAfterMs: 7 })),
    { code: 'timeout', message: 'silent' },
  ],
  ['a failure that it does not name', {}, {}, throwing(new TypeError('x is undefined')), { code: 'unexpected', message: 'x is undefined' }],
  ['something thrown that is no error', {}, {}, throwing('half'), { code: 'unexpected', message: 'half' }],
])('%s becomes a delivery error', async (_, parts, changed, call, expected) => {
  const result = await callTarget(depsWith(parts), { ...stored, destination: { ...destination, ...changed } }, minute, async () => call())
  expect(result).toBeInstanceOf(DeliveryError)
  expect(result).toMatchObject(expected)
})

/** Ends with the signal, as connectors have to. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))

test('a call that takes too long is ended, and says so', async () => {
  const limits = { timeoutMs: 20, cancelled: never }
  const result = await callTarget(depsWith(), stored, limits, (_, __, { signal }) => untilAborted(signal))
  expect(result).toMatchObject({ code: 'attempt_timeout', message: 'the attempt took longer than 0.02 s', permanent: false })
})

test('a cancellation is no failure of the target, also if the call says otherwise', async () => {
  const cancellation = new AbortController()
  const cancelled = cancellation.signal
  const reason = new Error('CANCELLED')
  const calls = [
    callTarget(depsWith(), stored, { timeoutMs: 60_000, cancelled }, (_, __, { signal }) => untilAborted(signal)),
    callTarget(depsWith(), stored, { timeoutMs: 60_000, cancelled }, (_, __, { signal }) =>
      untilAborted(signal).catch(throwing(new DeliveryError('timeout', 'silent'))),
    ),
    // A connector may be told another reason.
    callTarget(depsWith(), stored, { timeoutMs: 60_000, cancelled }, (_, __, { signal }) => untilAborted(signal), {
      signal: AbortSignal.any([cancelled]),
    }),
  ]
  setImmediate(() => cancellation.abort(reason))
  expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: 'rejected', reason })))
})

test("a failure of the relay's own database is thrown, and the target is not called", async () => {
  let calls = 0
  const failure = new Error('Connection terminated')
  const deps = depsWith({ installation: { id: () => Promise.reject(failure) } })
  await expect(callTarget(deps, stored, minute, async () => (calls += 1))).rejects.toBe(failure)
  expect(calls).toBe(0)
})
