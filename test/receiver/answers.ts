import type { SourceAnswer } from '../support/source-system.ts'

/** Expects a refusal: its code begins X-ErrorDescription and stands in the JSON body, with the message and the id of the request. */
export const expectRefusal = ({ headers, body }: SourceAnswer, code: string) => {
  const description = headers['x-errordescription']!
  expect(description).toMatch(/^[a-z_]+: [ -~]+$/)
  expect(headers['content-type']).toBe('application/json')
  expect(JSON.parse(String(body))).toEqual({
    error: { code, message: description.slice(`${code}: `.length), request_id: headers['x-relay-request-id'] },
  })
  expect(description.startsWith(`${code}: `)).toBe(true)
}

/** Returns the boundary of an answer to info or docGet. */
export const boundaryOf = ({ headers }: SourceAnswer) => /^multipart\/form-data; boundary=(\w+)$/.exec(headers['content-type'] ?? '')![1]!

const serverHeader = /(Date|Connection|Keep-Alive|x-relay-request-id|X-Content-Type-Options|Content-Security-Policy): .*\r\n/g

/** Removes the headers of an answer that differ each time or that every answer has. */
export const withoutServerHeaders = (text: string) => text.replaceAll(serverHeader, '')

const boundaryOfExample = 'A1LINKaf93'

interface ExampleComponent {
  compId: string
  contentType: string
  sizeBytes: number
  body: string
}

/** Returns the specified body of an answer to info or docGet, for a document dated back to `longAgo`. */
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

/** Returns the specified headers of an answer to info or docGet, for such a document with two components. */
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

/** Returns the body of an answer, with its boundary replaced by that of `exampleOf`. */
export const asExample = (answer: SourceAnswer) => answer.body.toString('latin1').replaceAll(boundaryOf(answer), boundaryOfExample)
