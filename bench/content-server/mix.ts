// The mix of commands that a published load test of another content server sends, after the traffic of a document management system
// (KPro): https://github.com/Lamiv/sharepointS4DMSAdapter, loadtest/contentserver.js.
import { randomInt } from 'node:crypto'
import { newId } from '../../src/base/ids.ts'
import { multipartBody, part } from '../../test/support/source-system.ts'
import { commandUrl, createByPut, type BenchRequest } from '../support/requests.ts'

const KiB = 1024
const seedDocuments = 30
export const seedBytes = 200 * KiB

const small = Buffer.alloc(seedBytes, 'x')
const medium = Buffer.alloc(KiB * KiB, 'x')
const large = Buffer.alloc(8 * KiB * KiB, 'x')
const boundary = 'KoZIhvcNAQcB'
const parts = multipartBody(boundary, [part('data', small, 'application/pdf'), part('descr', Buffer.alloc(2 * KiB, 'x'))])

/** A request of the mix, and what to do once it has been answered. */
interface Step {
  operation: Operation
  request: BenchRequest
  expectedStatus: number
  done?: () => void
}

const operations = {
  info: 25,
  get: 30,
  'get range': 5,
  docGet: 5,
  'create PUT': 18,
  'create POST': 8,
  'create 8 MiB': 3,
  delete: 6,
}
export type Operation = keyof typeof operations
export const operationNames = Object.keys(operations) as Operation[]

const chooseOperation = (): Operation => {
  let roll = randomInt(100)
  return operationNames.find((name) => (roll -= operations[name]) < 0)!
}

/** Time between the answer to a request of a client and its next request. */
export const thinkTimeMs = () => randomInt(100, 500)

/** Creates the requests that store the documents which the mix reads. */
export const seeds = (receiverUrl: string) => {
  const docIds = Array.from({ length: seedDocuments }, () => newId())
  return { docIds, requests: docIds.map((docId) => createByPut(receiverUrl, docId, small)) }
}

/** Creates the steps of one client. A client deletes only what it has created, the oldest first. */
export const createClient = (receiverUrl: string, seedIds: string[]) => {
  const created: string[] = []
  const read = (command: string, more = ''): BenchRequest => ({
    method: 'GET',
    url: commandUrl(receiverUrl, command, seedIds[randomInt(seedIds.length)]!, more),
  })
  const create = (operation: Operation, requestOf: (docId: string) => BenchRequest, isDeletable = true): Step => {
    const docId = newId()
    const done = () => void (isDeletable && created.push(docId))
    return { operation, request: requestOf(docId), expectedStatus: 201, done }
  }
  const steps: Record<Operation, () => Step | undefined> = {
    info: () => ({ operation: 'info', request: read('info'), expectedStatus: 200 }),
    get: () => ({ operation: 'get', request: read('get', '&compId=data'), expectedStatus: 200 }),
    'get range': () => ({
      operation: 'get range',
      request: read('get', '&compId=data&fromOffset=1000&toOffset=50999'),
      expectedStatus: 200,
    }),
    docGet: () => ({ operation: 'docGet', request: read('docGet'), expectedStatus: 200 }),
    'create PUT': () => create('create PUT', (docId) => createByPut(receiverUrl, docId, randomInt(5) > 0 ? small : medium)),
    'create POST': () =>
      create('create POST', (docId) => ({
        method: 'POST',
        url: commandUrl(receiverUrl, 'create', docId),
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: parts,
      })),
    'create 8 MiB': () => create('create 8 MiB', (docId) => createByPut(receiverUrl, docId, large), false),
    delete: () => {
      const docId = created.shift()
      if (docId === undefined) return undefined
      return { operation: 'delete', request: { method: 'GET', url: commandUrl(receiverUrl, 'delete', docId) }, expectedStatus: 200 }
    },
  }
  return {
    /** Returns the next step, or undefined if the client has nothing to delete. */
    next: (): Step | undefined => steps[chooseOperation()](),
  }
}
