import type { DeliveryJob } from '../../src/delivery/delivery-job.ts'
import { contentKeyOf, nextStep, type Step } from '../../src/delivery/next-step.ts'
import type { Progress } from '../../src/delivery/progress.ts'

const destination: DeliveryJob['destination'] = {
  id: 'archive',
  name: 'Archive',
  connector: 'sftp',
  config: {},
  deleted: false,
  downloadLinksVersion: 1,
}

/** A delivery whose attempt `mine` has been started. */
const started: DeliveryJob = {
  status: 'pending',
  path: 'in/1.pdf',
  connectionId: 'k',
  attempts: 0,
  superseded: false,
  location: null,
  overtaken: false,
  overwrites: 0,
  again: 0,
  replacesAtHome: null,
  workspaceId: 'w',
  workspace: 'acme/invoices',
  requestId: 'r',
  repoId: 'Z1',
  docId: 'D1',
  compId: 'data',
  erpObjectType: null,
  erpObjectId: null,
  arObject: null,
  fileName: null,
  description: null,
  fields: {},
  isEnriched: false,
  properties: {},
  isFilteredByFields: false,
  contentType: 'application/pdf',
  receivedAt: new Date(0),
  content: { id: 'c', store: 'postgres', sizeBytes: 5, appends: 0 },
  sha256: null,
  destination,
  credentialsSealed: Buffer.alloc(0),
  lastError: null,
  lastErrorCode: null,
  endedBy: null,
  activeRoutes: null,
  attemptId: 'mine',
  hasSlot: true,
  limits: { maxConcurrent: 4, maxPerMinute: 0 },
  refusal: null,
  isCalled: false,
  hasLine: false,
  failures: 0,
  remainingMs: null,
  isExpired: false,
  isRoundOver: false,
  dueInMs: null,
}

const circuitOpen = { waitingFor: 'circuit', circuit: 'open', askAgainMs: null } as const
const slotsTaken = { waitingFor: 'slot', circuit: null, askAgainMs: null } as const
const message = { ...destination, connector: 'email' }
const refused = { attemptId: null, hasSlot: false } as const
const upload: Progress = { attemptId: 'lost', content: contentKeyOf(started), bytesSent: 3, savedUpload: 'sealed' }
const lost = (bytesSent: number) => ({ attemptId: 'lost', bytesSent })
const send: Step = { step: 'send', savedUpload: undefined }

interface Case {
  job?: Partial<DeliveryJob>
  saved?: Partial<Progress>
  hasRouted?: true
  hasRecordedLoss?: true
  next: Step
}

test.each<[string, Case]>([
  ['an attempt that has a slot', { next: send }],
  ['a retry', { job: { status: 'retrying', failures: 2, remainingMs: 60_000 }, next: send }],
  ['cancelled', { job: { ...refused, status: 'cancelled' }, next: { step: 'end', status: 'cancelled' } }],
  ['delivered', { job: { ...refused, status: 'delivered' }, next: { step: 'end', status: 'delivered' } }],
  [
    'delivered, then superseded',
    { job: { ...refused, status: 'delivered', superseded: true, location: 'in/1.pdf' }, next: { step: 'redeliverNewer' } },
  ],
  [
    'superseded before anything was sent',
    { job: { ...refused, status: 'delivered', superseded: true }, next: { step: 'end', status: 'delivered' } },
  ],
  [
    'delivered, then superseded, as a message',
    {
      job: { ...refused, status: 'delivered', superseded: true, location: 'in/1.pdf', destination: message },
      next: { step: 'end', status: 'delivered' },
    },
  ],
  ['the destination deleted', { job: { ...refused, destination: { ...destination, deleted: true } }, next: { step: 'cancel' } }],
  [
    'delivered, and the destination deleted',
    {
      job: { ...refused, status: 'delivered', destination: { ...destination, deleted: true } },
      next: { step: 'end', status: 'delivered' },
    },
  ],
  ['held', { job: { ...refused, status: 'held' }, next: { step: 'end', status: 'held' } }],
  [
    'held, and the destination deleted',
    { job: { ...refused, status: 'held', destination: { ...destination, deleted: true } }, next: { step: 'cancel' } },
  ],
  [
    'an attempt of a lost worker',
    { job: { attemptId: 'lost', hasSlot: false }, next: { step: 'recordLoss', lost: lost(0), goesOn: false } },
  ],
  [
    'an attempt of a lost worker that has sent bytes',
    {
      job: { attemptId: 'lost', hasSlot: false },
      saved: { attemptId: 'lost', bytesSent: 3 },
      next: { step: 'recordLoss', lost: lost(3), goesOn: false },
    },
  ],
  [
    'an attempt of a lost worker that has saved an upload',
    { job: { attemptId: 'lost', hasSlot: false }, saved: upload, next: { step: 'recordLoss', lost: lost(3), goesOn: true } },
  ],
  [
    'an attempt of a lost worker, and an upload of another one',
    {
      job: { attemptId: 'lost', hasSlot: false },
      saved: { ...upload, attemptId: 'earlier' },
      next: { step: 'recordLoss', lost: lost(0), goesOn: false },
    },
  ],
  [
    'an attempt of another run, after the lost one was recorded',
    { job: { attemptId: 'other', hasSlot: false }, saved: upload, hasRecordedLoss: true, next: { step: 'giveWay' } },
  ],
  [
    'an upload that is resumed, after the lost attempt was recorded',
    { job: { status: 'retrying' }, saved: upload, hasRecordedLoss: true, next: { step: 'send', savedUpload: 'sealed' } },
  ],
  ['a first attempt by a filter that needs business data', { job: { isFilteredByFields: true }, next: { step: 'route' } }],
  ['one that the filter has selected', { job: { isFilteredByFields: true }, hasRouted: true, next: send }],
  ['one after an attempt', { job: { isFilteredByFields: true, attempts: 1 }, next: send }],
  ['an upload that is resumed after a stop', { saved: upload, next: { step: 'send', savedUpload: 'sealed' } }],
  ['an upload of a document that was appended to', { job: { content: { ...started.content, sizeBytes: 6 } }, saved: upload, next: send }],
  ['an upload of a document that was overwritten at its path', { job: { overwrites: 1 }, saved: upload, next: send }],
  ['failed, and a retry signalled without the API', { job: { ...refused, status: 'failed' }, next: { step: 'resume' } }],
  ['failed in this round', { job: { ...refused, status: 'failed', isRoundOver: true }, next: { step: 'fail' } }],
  [
    'failed in this round, and the destination deleted',
    { job: { ...refused, status: 'failed', isRoundOver: true, destination: { ...destination, deleted: true } }, next: { step: 'cancel' } },
  ],
  ['retried by an operator, in the round before', { job: { ...refused, status: 'retrying', isRoundOver: true }, next: { step: 'fail' } }],
  ['not due', { job: { ...refused, status: 'retrying', failures: 1, dueInMs: 50_000 }, next: { step: 'backOff', delayMs: 50_000 } }],
  [
    'not due, and an inactive connection',
    { job: { ...refused, status: 'retrying', dueInMs: 50_000, activeRoutes: [] }, next: { step: 'backOff', delayMs: 50_000 } },
  ],
  ['an inactive connection', { job: { activeRoutes: [] }, next: { step: 'hold' } }],
  ['an inactive connection, and another one whose filter selects the document', { job: { activeRoutes: [{}] }, next: send }],
  ['an inactive connection, and no slot', { job: { ...refused, activeRoutes: [], refusal: slotsTaken }, next: { step: 'hold' } }],
  ['an inactive connection, and the time to live over', { job: { ...refused, activeRoutes: [], isExpired: true }, next: { step: 'hold' } }],
  ['the time to live over', { job: { ...refused, status: 'retrying', failures: 1, isExpired: true }, next: { step: 'expire' } }],
  ['all slots taken', { job: { ...refused, refusal: slotsTaken }, next: { step: 'waitInLine' } }],
  ['an open circuit', { job: { ...refused, refusal: circuitOpen }, next: { step: 'waitInLine' } }],
  ['called, and no slot', { job: { ...refused, refusal: slotsTaken, isCalled: true }, next: { step: 'waitInLine' } }],
  ['a slot for an attempt that was not started', { job: { attemptId: null }, next: { step: 'giveWay' } }],
  ['superseded', { job: { superseded: true }, next: send }],
  [
    'superseded, and the newer document delivered',
    { job: { superseded: true, overtaken: true }, saved: upload, next: { step: 'recordSuperseded' } },
  ],
  [
    'superseded, and the newer document delivered, as a message',
    { job: { superseded: true, overtaken: true, destination: message }, next: send },
  ],
])('%s', (_, { job, saved, hasRouted = false, hasRecordedLoss = false, next }) => {
  const replacesByPath = (connector: string) => connector !== 'email'
  expect(nextStep({ ...started, ...job }, { attemptId: 'mine', hasRouted, hasRecordedLoss, replacesByPath }, saved)).toEqual(next)
})
