import { listParticipants } from '../db/duties.ts'
import type { WorkerDescription } from '../domain/relay-state.ts'
import { createRelayWatch, type RelayWatch } from '../observe/relay-watch.ts'
import { dispatchDuty } from '../temporal/dispatcher.ts'
import { isRefusal } from '../temporal/errors.ts'
import { listPollers } from '../temporal/pollers.ts'
import type { Runtime } from './runtime.ts'

/** Starts the watch of this process over the workers and Temporal. */
export const openRelayWatch = ({
  db,
  temporal,
  config,
  log,
  onClose,
}: Pick<Runtime, 'db' | 'temporal' | 'config' | 'log' | 'onClose'>): RelayWatch => {
  const watch = createRelayWatch({
    listPollers: () =>
      listPollers(temporal.connection, temporal.client.options.namespace, config).catch((thrown: unknown) => {
        // Some clouds do not allow the call. Then the workers themselves are known, and that Temporal answers.
        if (isRefusal(thrown)) return undefined
        throw thrown
      }),
    listWorkers: () => listParticipants<WorkerDescription>(db, dispatchDuty),
    log,
  })
  watch.start()
  onClose(watch.close)
  return watch
}
