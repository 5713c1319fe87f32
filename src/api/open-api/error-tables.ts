import { errorStatus, type ErrorCode } from '../../base/errors.ts'
import { actionFor, errorCodes, type Remedy } from '../../connectors/error-codes.ts'
import { refusals } from '../../domain/refusal-codes.ts'
import { errorGuide } from './error-guide.ts'

interface ErrorTable {
  header: string[]
  /** Cells in Markdown, by code. */
  rows: [code: string, cells: string[]][]
}

const actors: Record<Remedy, string> = {
  credentials: 'a member of the workspace',
  permission: "the target's administrator",
  configuration: 'a member of the workspace',
  target: "the target's administrator",
  relay: 'the operator of the relay',
}

const retriedOf = (permanent: boolean | undefined) => (permanent === undefined ? 'depends on the case' : permanent ? 'no, final' : 'yes')

const apiErrors = (): ErrorTable => ({
  header: ['code', 'status', 'what the caller does', 'what the operator does'],
  rows: Object.entries(errorGuide)
    .map(([code, { caller, operator }]): [code: string, status: number, cells: string[]] => {
      const status = code === 'internal_error' ? 500 : errorStatus[code as ErrorCode]
      return [code, status, [String(status), caller, operator]]
    })
    .toSorted(([, one], [, other]) => one - other)
    .map(([code, , cells]) => [code, cells]),
})

const deliveryErrors = (): ErrorTable => ({
  header: ['code', 'retried', 'who acts', 'what to do before retrying the document'],
  rows: Object.entries<{ permanent?: boolean; remedy: Remedy }>(errorCodes).map(([code, { permanent, remedy }]) => [
    code,
    [retriedOf(permanent), actors[remedy], actionFor(code, '*NAME*')],
  ]),
})

const sourceErrors = (): ErrorTable => ({
  header: ['code', 'status', 'what to do'],
  rows: Object.entries(refusals).map(([code, { status, remedy }]) => [code, [String(status), remedy]]),
})

/** Returns the tables of all error codes, for docs/errors.md, which the relay serves at `/docs/errors`. */
export const errorTables = (): Record<'api' | 'delivery' | 'source', ErrorTable> => ({
  api: apiErrors(),
  delivery: deliveryErrors(),
  source: sourceErrors(),
})
