// Faults of Temporal. The database alone decides if a create is acknowledged, so none may be refused.
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import type { Load } from '../load.ts'
import type { Row, Scene } from '../run-row.ts'

/** Creates small documents, as fast as this number of clients can. */
const createTogether = (load: Load, documents: number, clients: number) =>
  Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let number = client; number < documents; number += clients) await load.create({ sizeBytes: 1_024 })
    }),
  )

const crashed: Row = {
  name: 'temporal-crashed',
  fault: 'Temporal is killed and started again at once, with the same database',
  acceptsAlways: true,
  run: async ({ installation: { temporal }, returned }) => {
    await temporal.kill()
    await temporal.start()
    returned()
  },
}

const frozen: Row = {
  name: 'temporal-frozen',
  fault: 'Temporal is stopped with SIGSTOP for 8 s (long form: 60 s), and continues',
  acceptsAlways: true,
  run: async ({ installation: { temporal }, returned, hold }) => {
    await temporal.freeze()
    await hold(8_000, 60_000)
    await temporal.thaw()
    returned()
  },
}

const burstDocuments = 80
const burstClients = 8

const slow: Row = {
  name: 'temporal-slow',
  fault:
    'Temporal stands still for 400 of every 500 ms, for 45 s (long form: 150 s), and 80 documents arrive at once. What it owes a workflow takes it seconds',
  acceptsAlways: true,
  load: { clients: 2, intervalMs: 3_000 },
  run: async ({ installation: { temporal }, load, returned, isShort }) => {
    const burst = createTogether(load, burstDocuments, burstClients)
    for (const endsAt = Date.now() + (isShort ? 45_000 : 150_000); Date.now() < endsAt; await pause(100)) {
      await temporal.freeze()
      await pause(400)
      await temporal.thaw()
    }
    await burst
    returned()
  },
}

const refusedDocuments = 3

const refused: Row = {
  name: 'temporal-frozen-refused',
  // Temporal hears the answers of attempts after a shorter stop: the SDK repeats them.
  longOnly: true,
  fault: `A target refuses ${refusedDocuments} documents for good while Temporal is stopped with SIGSTOP for 60 s. None may reach it twice`,
  kinds: ['webhook'],
  acceptsAlways: true,
  run: async ({ installation: { temporal, targets }, load, expectRefused, returned, hold }) => {
    const docIds = Array.from({ length: refusedDocuments }, () => load.newDocId())
    const isFrozen = Promise.withResolvers<void>()
    const reached = new Set<string>()
    targets.web.answerWith(({ headers }, response) => {
      const docId = String(headers['x-relay-doc-id'])
      if (!docIds.includes(docId)) {
        response.end('accepted')
        return
      }
      reached.add(docId)
      void isFrozen.promise.then(() => response.writeHead(422).end('refused'))
    })
    for (const docId of docIds) {
      expectRefused(docId)
      await load.create({ docId, sizeBytes: 1_024 })
    }
    await until('the target has these documents', () => reached.size === refusedDocuments)
    await temporal.freeze()
    // The answers of these attempts are lost: Temporal notices after the heartbeat timeout, and repeats the activities.
    isFrozen.resolve()
    await hold(60_000, 60_000)
    await temporal.thaw()
    returned()
  },
  cleanUp: async ({ targets }) => targets.web.answerWith((_, response) => void response.end('accepted')),
}

const silent: Row = {
  name: 'temporal-silent',
  fault:
    'Every packet between the relay and Temporal is lost for 20 s (long form: 60 s), and nothing is closed. Connections that were open stay silent for ever',
  acceptsAlways: true,
  known: 'the client of a worker, which is part of the SDK, replaces a silent connection after 45 s, and no option changes that',
  run: async ({ installation: { proxies }, returned, hold }) => {
    proxies.temporal.set({ kind: 'lossy' })
    await hold(20_000, 60_000)
    proxies.temporal.set({ kind: 'up' })
    returned()
  },
}

const away: Row = {
  name: 'temporal-away',
  fault: 'Temporal is killed, and started again after 20 s (long form: 5 minutes)',
  acceptsAlways: true,
  known:
    'five minutes leave some 150 documents behind, each for three targets, and two cores deliver about twelve of these deliveries a second',
  run: async ({ installation: { temporal }, returned, hold }) => {
    await temporal.kill()
    await hold(20_000, 300_000)
    await temporal.start()
    returned()
  },
}

const cutOff =
  'a worker ends an attempt that Temporal has forgotten. If the target has taken the document just then, it gets it again, with the same id'

const empty: Row = {
  name: 'temporal-empty',
  fault: 'Temporal is killed while a target is away, and comes back without its data: every workflow and every schedule is gone',
  acceptsAlways: true,
  mayDuplicate: cutOff,
  run: async ({ installation: { temporal, targets }, returned, hold }) => {
    targets.all.sftp.proxy!.set({ kind: 'down' })
    await hold(3_000, 10_000)
    await temporal.kill()
    await temporal.erase()
    await temporal.start()
    targets.all.sftp.proxy!.set({ kind: 'up' })
    returned()
  },
  cleanUp: async ({ targets }) => targets.all.sftp.proxy!.set({ kind: 'up' }),
}

const backlogDocuments = 350
const backlogClients = 8

const emptyWithBacklog: Row = {
  name: 'temporal-empty-backlog',
  longOnly: true,
  fault: 'Temporal is killed while every target is away and a thousand deliveries wait, and comes back without its data',
  acceptsAlways: true,
  mayDuplicate: cutOff,
  known: 'two cores start again and deliver about twenty of the thousand deliveries a second',
  run: async ({ installation, load, returned }) => {
    const { temporal, targets } = installation
    const proxies = [targets.all.objstore, targets.all.sftp, targets.all.webhook].map(({ proxy }) => proxy!)
    for (const proxy of proxies) proxy.set({ kind: 'down' })
    await createTogether(load, backlogDocuments, backlogClients)
    await temporal.kill()
    await temporal.erase()
    await temporal.start()
    for (const proxy of proxies) proxy.set({ kind: 'up' })
    returned()
  },
  cleanUp: async ({ targets }) => {
    for (const { proxy } of [targets.all.objstore, targets.all.sftp, targets.all.webhook]) proxy!.set({ kind: 'up' })
  },
}

/** Sets Temporal back by some seconds, while a target is away. */
const restoreBackup = async ({ installation, returned, hold }: Scene, whileDown: () => void) => {
  const { temporal, targets } = installation
  const { proxy } = targets.all.sftp
  proxy!.set({ kind: 'down' })
  await hold(2_000, 10_000)
  await temporal.backUp()
  await hold(4_000, 20_000)
  await temporal.kill()
  whileDown()
  await temporal.restore()
  await temporal.start()
  proxy!.set({ kind: 'up' })
  returned()
}

const cannotGoOn =
  'what workers hold in memory is ahead of the backup. A restored workflow to which they add contradicts its code, and never goes on'

const older: Row = {
  name: 'temporal-restored',
  longOnly: true,
  fault: 'Temporal is killed while a target is away, and comes back from a backup that is some seconds old',
  acceptsAlways: true,
  mayDuplicate: cutOff,
  mayTerminate: cannotGoOn,
  known:
    'workers that keep running hold workflows in memory that are ahead of the backup. What they add to a restored history contradicts the ' +
    'code of the workflow, and Temporal repeats its task without end. Restart the workers when Temporal is restored',
  run: (scene) => restoreBackup(scene, () => {}),
  cleanUp: async ({ targets }) => targets.all.sftp.proxy!.set({ kind: 'up' }),
}

const olderAndRestarted: Row = {
  name: 'temporal-restored-with-restart',
  fault: 'The same, and every worker is killed before Temporal starts. The supervisor starts the workers again',
  acceptsAlways: true,
  mayDuplicate: 'a worker that is killed between the answer of a target and its record sends the document again',
  run: (scene) =>
    restoreBackup(scene, () => {
      for (const one of scene.installation.processes) if (one.verb === 'worker') one.kill()
    }),
  cleanUp: async ({ targets }) => targets.all.sftp.proxy!.set({ kind: 'up' }),
}

export const temporalRows: Row[] = [crashed, frozen, refused, slow, silent, away, empty, emptyWithBacklog, older, olderAndRestarted]
