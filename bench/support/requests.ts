import { Agent, request, type Dispatcher } from 'undici'

export interface BenchRequest {
  method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  headers?: Record<string, string>
  body?: Buffer
}

/** Creates a client that keeps its connections, reads every answer to its end, and throws unless the status is the expected one. */
export const createRequests = (connections: number) => {
  const agent = new Agent({ connections, headersTimeout: 120_000, bodyTimeout: 120_000 })
  return {
    /** @returns the number of bytes of the answer */
    send: async ({ method, url, headers = {}, body }: BenchRequest, expectedStatus: number): Promise<number> => {
      const answer = await request(url, { method, headers, body: body ?? null, dispatcher: agent })
      const sizeBytes = await readToEnd(answer)
      if (answer.statusCode !== expectedStatus) throw new Error(`${method} ${url} was answered ${answer.statusCode}`)
      return sizeBytes
    },
    /** @returns the text of an answer 200 */
    read: async (url: string): Promise<string> => (await request(url, { dispatcher: agent })).body.text(),
    close: () => agent.close(),
  }
}

export type Requests = ReturnType<typeof createRequests>

const readToEnd = async ({ body }: Dispatcher.ResponseData): Promise<number> => {
  let sizeBytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) sizeBytes += chunk.length
  return sizeBytes
}

/** Returns the address of a command on a document. */
export const commandUrl = (receiverUrl: string, command: string, docId: string, more = '', repoId = 'Z1'): string =>
  `${receiverUrl}?${command}&pVersion=0047&contRep=${repoId}&docId=${docId}${more}`

/** Returns the request that creates a document of one component. */
export const createByPut = (receiverUrl: string, docId: string, body: Buffer, repoId = 'Z1'): BenchRequest => ({
  method: 'PUT',
  url: commandUrl(receiverUrl, 'create', docId, '&compId=data', repoId),
  headers: { 'content-type': 'application/pdf' },
  body,
})
