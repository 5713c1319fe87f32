// Faults of a destination that alone has the contents of documents.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { runProgram } from '../../src/programs/programs.ts'
import { until } from '../../test/support/until.ts'
import type { Installation } from '../installation.ts'
import type { Workspace } from '../load.ts'
import type { Row } from '../run-row.ts'

interface AtHome {
  docId: string
  /** Digest in hex. */
  sha256: string
}

const wantedDocuments = 5

/** Calls the management API. @returns the data of the answer */
const call = async ({ baseUrls }: Installation, { apiPath, key }: Workspace, path: string, change?: object) => {
  const answer = await fetch(`${baseUrls[0]}${apiPath}${path}`, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(change && { method: 'PATCH', body: JSON.stringify(change) }),
  })
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { data: { id: string; attributes: Record<string, unknown> }[] }).data
}

/** Has contents leave for the home of the repository, as the schedule of the job does. */
const moveHome = ({ config, temporal, temporalProgram }: Installation) =>
  runProgram(temporalProgram, ['schedule', 'trigger', '--address', `127.0.0.1:${temporal.port()}`, '--schedule-id', 'relay-move-home'], {
    env: config.childEnvironment,
    timeoutMs: 30_000,
  })

const listAtHome = ({ query }: Installation, workspaceId: string) =>
  query<AtHome>(
    `
    select doc_id as "docId", encode(sha256, 'hex') as sha256
    from home_contents
    join documents on documents.id = document_id and documents.content_id = home_contents.content_id
    join contents on contents.id = documents.content_id
    where documents.workspace_id = $1
    order by documents.id
    `,
    [workspaceId],
  )

type Read = 'right' | 'refused' | 'broken off' | 'WRONG'

const read = async (baseUrl: string, { path, repositories }: Workspace, { docId, sha256 }: AtHome): Promise<Read> => {
  try {
    const answer = await fetch(`${baseUrl}${path}?get&pVersion=0045&contRep=${repositories.open}&docId=${docId}&compId=data`)
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status === 503) return 'refused'
    return answer.status === 200 && createHash('sha256').update(bytes).digest('hex') === sha256 ? 'right' : 'WRONG'
  } catch {
    return 'broken off'
  }
}

const homeAway: Row = {
  name: 'home-away',
  fault:
    'A destination alone has the contents of documents, which are read all the time. It resets every connection for 8 s (long form: 60 s), and returns. Every read is right or refused',
  kinds: ['objstore'],
  acceptsAlways: true,
  run: async ({ installation, workspace, returned, hold, note }) => {
    const { baseUrls, targets, query } = installation
    await until(
      'documents of the repository are delivered',
      () =>
        query(`select from documents where workspace_id = $1 and repo_id = $2 and status = 'delivered'`, [
          workspace.id,
          workspace.repositories.open,
        ]),
      (found) => found.length >= wantedDocuments,
    )
    const repositories = await call(installation, workspace, '/repositories')
    const repository = repositories.find(({ attributes }) => attributes['repo_id'] === workspace.repositories.open)!
    const [destination] = await call(installation, workspace, '/destinations?type=objstore')
    await call(installation, workspace, `/repositories/${repository.id}`, { home_destination_id: destination!.id, home_after_days: 0 })
    await until(
      'contents have left for their home',
      async () => {
        await moveHome(installation)
        await pause(2_000)
        return listAtHome(installation, workspace.id)
      },
      (found) => found.length >= wantedDocuments,
    )
    const documents = await listAtHome(installation, workspace.id)
    const reads: Record<'before' | 'away' | 'after', Record<Read, number>> = {
      before: { right: 0, refused: 0, 'broken off': 0, WRONG: 0 },
      away: { right: 0, refused: 0, 'broken off': 0, WRONG: 0 },
      after: { right: 0, refused: 0, 'broken off': 0, WRONG: 0 },
    }
    const readAll = async (phase: keyof typeof reads) => {
      for (const [index, document] of documents.entries())
        reads[phase][await read(baseUrls[index % baseUrls.length]!, workspace, document)] += 1
    }
    await readAll('before')
    targets.all.objstore.proxy!.set({ kind: 'down' })
    const back = new AbortController()
    const reading = (async () => {
      while (!back.signal.aborted) await readAll('away')
    })()
    await hold(8_000, 60_000)
    back.abort()
    await reading
    targets.all.objstore.proxy!.set({ kind: 'up' })
    returned()
    await readAll('after')
    const told = Object.entries(reads).map(([phase, counts]) => {
      const some = Object.entries(counts).filter(([, count]) => count > 0)
      return `${phase}: ${some.map(([how, count]) => `${count} ${how}`).join(', ')}`
    })
    note(`reads of ${documents.length} documents that only their home has, ${told.join('; ')}`)
    const { before, away, after } = reads
    if (before.right + after.right !== 2 * documents.length || away.WRONG > 0 || away.refused === 0)
      throw new Error(`reads: ${told.join('; ')}`)
  },
}

export const homeRows: Row[] = [homeAway]
