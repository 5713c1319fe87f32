// Faults under programs that follow what happens: every row has them (`reader.ts`), and this one gives them much to follow.
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import type { Row, Scene } from '../run-row.ts'
import { failOver, needsStandby } from './database.ts'
import { killEverything } from './relay.ts'

const documents = 10_000
const documentsInShortForm = 1_000
const senders = 4
const sizeBytes = 1_024
/** More may not wait to be delivered: otherwise everything would be sent before the first fault has had its effect. */
const maxOpen = 200
const sendLimitMs = 1_200_000

const countOpen = async ({ installation, workspace }: Scene): Promise<number> => {
  const [row] = await installation.query<{ count: number }>(
    `select count(*)::integer as count from deliveries where workspace_id = $1 and status in ('pending', 'retrying')`,
    [workspace.id],
  )
  return row!.count
}

const send = async (scene: Scene, isEnough: () => boolean): Promise<void> => {
  const { load } = scene
  let isBehind = false
  const watch = async () => {
    for (; !isEnough(); await pause(500)) isBehind = (await countOpen(scene).catch(() => maxOpen)) >= maxOpen
  }
  const create = async (apiIndex: number) => {
    while (!isEnough()) {
      const { outcome } = isBehind ? { outcome: undefined } : await load.create({ sizeBytes, signed: false, apiIndex })
      if (outcome !== 'acknowledged') await pause(250)
    }
  }
  await Promise.all([watch(), ...Array.from({ length: senders }, (_, index) => create(index))])
}

const followed: Row = {
  name: 'followed-through-faults',
  fault:
    `${documents.toLocaleString('en')} documents (short form: ${documentsInShortForm.toLocaleString('en')}) arrive. After a quarter of them, PostgreSQL, Temporal and ` +
    'every process of the relay are killed and started again; after six tenths, PostgreSQL is killed and its synchronous standby promoted. ' +
    'A program that follows GET /events and a subscription get every event, those of a document in order',
  kinds: ['webhook'],
  cannotRun: needsStandby,
  mayDuplicate: 'a delivery whose record was lost with a process or the database is made again',
  run: async (scene) => {
    const { installation, load, isShort, returned, note } = scene
    const total = isShort ? documentsInShortForm : documents
    const startedAt = Date.now()
    const acknowledged = () => load.sent.filter(({ outcome }) => outcome === 'acknowledged').length
    const untilSent = (share: number) =>
      until(`${total * share} documents are acknowledged`, acknowledged, (count) => count >= total * share, sendLimitMs)
    let isEnough = false
    const sending = send(scene, () => isEnough)
    try {
      await untilSent(0.25)
      await killEverything(installation)
      await untilSent(0.6)
      await failOver(scene)
      await untilSent(1)
    } finally {
      isEnough = true
      await sending
    }
    // How soon an installation recovers is the subject of other rows.
    await until(
      'everything is delivered',
      () => countOpen(scene),
      (count) => count === 0,
      sendLimitMs,
    )
    returned()
    note(`${acknowledged()} documents were sent and delivered in ${Math.round((Date.now() - startedAt) / 1_000)} s, with both faults`)
  },
}

export const followerRows: Row[] = [followed]
