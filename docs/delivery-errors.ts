import { readFileSync } from 'node:fs'
import { errorCodes, remedyFor, type Remedy } from '../src/connectors/error-codes.ts'
import { refusals } from '../src/domain/refusal-codes.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

const actors: Record<Remedy, string> = {
  credentials: 'a member of the workspace',
  permission: "the target's administrator",
  configuration: 'a member of the workspace',
  target: "the target's administrator",
  relay: 'the operator of the relay',
}

const retriedOf = (permanent: boolean | undefined) => (permanent === undefined ? 'depends on the case' : permanent ? 'no, final' : 'yes')

/** Returns docs/errors.md with its tables of delivery error codes and of refusal codes, from src/connectors/error-codes.ts and src/domain/refusal-codes.ts. */
export const errorsPage = (): string => {
  const rows = Object.entries<{ permanent?: boolean; remedy: Remedy }>(errorCodes).map(([code, { permanent, remedy }]) => [
    `\`${code}\``,
    retriedOf(permanent),
    actors[remedy],
    remedyFor(code, '*NAME*').replace(', then retry the document.', ''),
  ])
  const page = readFileSync(new URL('errors.md', import.meta.url), 'utf8')
  const table = markdownTable(['code', 'retried', 'who acts', 'what to do before retrying the document'], rows)
  const refused = Object.entries(refusals).map(([code, { status, remedy }]) => [`\`${code}\``, String(status), remedy])
  const refusalTable = markdownTable(['code', 'status', 'what to do'], refused)
  return withGenerated(withGenerated(page, 'delivery error codes', `\n${table}`), 'refusal codes', `\n${refusalTable}`)
}
