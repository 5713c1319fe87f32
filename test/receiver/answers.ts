import { multipartBody, type CallOptions, type PartToSend, type SourceAnswer } from '../support/source-system.ts'

export const post = (parts: PartToSend[]): CallOptions => ({
  method: 'POST',
  body: multipartBody('KoZbnd01', parts),
  headers: { 'content-type': 'multipart/form-data; boundary=KoZbnd01' },
})

interface PartOfAnswer {
  /** Names in lower case, one character a byte. */
  headers: Record<string, string>
  body: string
}

/** Of an info or a docGet. */
export const boundaryOf = ({ headers }: SourceAnswer) => /^multipart\/form-data; boundary=(\w+)$/.exec(headers['content-type'] ?? '')![1]!

/** The parts of an info or a docGet, one character a byte. */
export const partsOf = (answer: SourceAnswer): PartOfAnswer[] => {
  const [before, ...pieces] = answer.body.toString('latin1').split(`--${boundaryOf(answer)}`)
  expect([before, pieces.pop()]).toEqual(['', '--\r\n'])
  // the interface writes no parts as one delimiter and nothing behind it
  if (pieces.length === 1 && pieces[0] === '\r\n') return []
  return pieces.map((piece) => {
    const headEnd = piece.indexOf('\r\n\r\n')
    const lines = piece.slice(2, headEnd).split('\r\n')
    return {
      headers: Object.fromEntries(lines.map((line) => [line.split(': ')[0]!.toLowerCase(), line.slice(line.indexOf(': ') + 2)])),
      body: piece.slice(headEnd + 4, -2),
    }
  })
}

export const compIdsOf = (answer: SourceAnswer) => partsOf(answer).map(({ headers }) => headers['x-compid'])

/** An answer as it came, without what every HTTP server adds. */
export const bare = (text: string) => text.replaceAll(/(Date|Connection|Keep-Alive|x-relay-request-id): .*\r\n/g, '')

const boundaryOfExample = 'A1LINKaf93'

interface ExampleComponent {
  compId: string
  contentType: string
  sizeBytes: number
  body: string
}

/** An info or a docGet of an aged document, as the interface has it. */
export const exampleOf = (components: ExampleComponent[]): string => {
  const lines = components.flatMap(({ compId, contentType, sizeBytes, body }) => [
    `--${boundaryOfExample}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
    `X-compId: ${compId}`,
    `X-Content-Length: ${sizeBytes}`,
    'X-compDateC: 2026-03-02',
    'X-compTimeC: 10:15:30',
    'X-compDateM: 2026-03-02',
    'X-compTimeM: 10:15:30',
    'X-compStatus: online',
    'X-pVersion: 0045',
    '',
    body,
  ])
  return [...lines, `--${boundaryOfExample}--`, ''].join('\r\n')
}

/** The headers of both, of a document of two components. */
export const exampleHeaders = (docId: string) => ({
  'x-datec': '2026-03-02',
  'x-timec': '10:15:30',
  'x-datem': '2026-03-02',
  'x-timem': '10:15:30',
  'x-numbercomps': '2',
  'x-numcomps': '2',
  'x-contentrep': 'Z1',
  'x-contrep': 'Z1',
  'x-docid': docId,
  'x-docstatus': 'online',
  'x-pversion': '0045',
  'cache-control': 'no-store',
})

/** An answer with the boundary of the example in the place of its own. */
export const asExample = (answer: SourceAnswer) => answer.body.toString('latin1').replaceAll(boundaryOf(answer), boundaryOfExample)
