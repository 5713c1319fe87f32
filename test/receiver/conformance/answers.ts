import { multipartBody, type CallOptions, type PartToSend, type SourceAnswer } from '../../support/source-system.ts'

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

/** The parts of an info or a docGet, one character a byte. */
export const partsOf = ({ headers, body }: SourceAnswer): PartOfAnswer[] => {
  const boundary = /^multipart\/form-data; boundary=(\w+)$/.exec(headers['content-type'] ?? '')?.[1]
  const [before, ...pieces] = body.toString('latin1').split(`--${boundary}`)
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
