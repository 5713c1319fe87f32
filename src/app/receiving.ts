import { createCaptureStore } from '../capture/capture.ts'
import { createCapturedRequests } from '../capture/captured-requests.ts'
import { createCaptureQueue } from '../capture/queue.ts'
import { createSealedQueries } from '../capture/redact.ts'
import { createReplay } from '../capture/replay.ts'
import { createAcknowledgeReplayed } from '../delivery/acknowledge.ts'
import { createThreads } from '../http/threads.ts'
import { createReadThrough } from '../migration/read-through.ts'
import { createReceiver } from '../receiver/app.ts'
import type { Runtime } from './runtime.ts'
import { traceCommits } from './tracing/documents.ts'
import { receiverUseCases } from './use-cases.ts'

/** Opens the receiver and what it captures with: for the requests of source systems in the API, and for replays in both processes. */
export const openReceiver = ({ config, log, tracing, db, launcher, stores, writeTo, keyRing, outbound, onClose }: Runtime) => {
  const captures = createCaptureQueue(createCaptureStore(db), config, log)
  onClose(captures.close)
  const searchThreads = createThreads()
  onClose(searchThreads.close)
  const sealedQueries = createSealedQueries(keyRing)
  const receiving = receiverUseCases(db, config)
  const launch = launcher.launch
  const readThrough = createReadThrough({ ...receiving, outbound, keyRing, writeTo, launch, log })
  onClose(readThrough.close)
  const receiver = createReceiver({
    ...(tracing ? traceCommits(tracing, receiving) : receiving),
    contents: { stores, writeTo },
    captures,
    sealedQueries,
    runOnThread: searchThreads.run,
    readThrough,
    launch,
    config,
    log,
  })
  const replay = createReplay({
    db,
    find: createCapturedRequests(db).findForReplay,
    openQuery: sealedQueries.open,
    execute: receiver.replay,
    acknowledge: createAcknowledgeReplayed(db),
  })
  return { captures, receiver, replay, readThrough }
}
