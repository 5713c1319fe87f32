import { systemAnswerMaxBytes } from '../../src/rfc/rfc-client.ts'
import type { RfcCall } from '../../src/rfc/soap.ts'
import { result, startRfcSystem } from '../support/rfc-system.ts'
import { hostileJson, repeated } from './hostile.ts'
import type { HostileRequest } from './measured-relay.ts'

// Less the envelope.
const answerBytes = systemAnswerMaxBytes - 1_000

const answers: Record<string, string> = {
  Z_ROWS: repeated('<item><A>1</A></item>', answerBytes),
  Z_REFERENCES: repeated('&#38;', answerBytes),
  Z_FIELDS: Array.from({ length: 90_000 }, (_, index) => `<F${index}>1</F${index}>`).join(''),
  Z_DEEP: '<a>'.repeat(300_000) + '</a>'.repeat(290_000),
}

/** Starts a system that answers functions with hostile XML. */
export const startHostileSystem = () =>
  startRfcSystem({
    ...Object.fromEntries(
      Object.entries(answers).map(([name, xml]) => [name, (called: RfcCall['imports']) => result(name, called, `<T>${xml}</T>`)]),
    ),
    Z_EMPTY: (called) => result('Z_EMPTY', called, ''),
  })

export const hostileFunctions = [...Object.keys(answers), 'Z_EMPTY']

/** The calls of these functions. @param path of the bridge of a workspace */
export const bridgeRequests = (path: string, headers: Record<string, string>): HostileRequest[] => {
  const call = (functionName: string, name: string, body: string): HostileRequest => ({
    covers: 'rfc',
    name: `${functionName}: ${name}`,
    path: `${path}/rfc/${functionName}`,
    method: 'POST',
    headers,
    body,
  })
  return [
    ...Object.keys(answers).map((name) => call(name, 'its answer', '{"tables":{"T":[]}}')),
    ...Object.entries(hostileJson).map(([name, json]) => call('Z_EMPTY', name, `{"imports":{"A":${json}}}`)),
    call('Z_EMPTY', 'as many values as possible', `{"tables":{"A":[${'"a",'.repeat(49_000)}"a"]}}`),
    call('Z_EMPTY', 'as many errors as possible', `{"tables":{"A":[${'{"-":[]},'.repeat(16_000)}0]}}`),
    call('Z_EMPTY', 'a long text', JSON.stringify({ imports: { A: repeated('<') } })),
    call('A'.repeat(60_000), 'a long name', '{}'),
  ]
}
