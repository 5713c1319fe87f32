import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Double, DoubleResponse } from './double.ts'

/** The requests that something in between answers: all of them, or the one of this number, counted from 0. */
export type Answered = 'all' | number

/** Something between the relay and a target that answers with a page: a proxy that wants a login, a portal, a gateway. */
export interface Pages {
  port: number
  /** Returns the number of requests that it has answered itself. */
  answered(): number
  stop(): Promise<void>
}

const text = '<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in to this network.</body></html>\n'

const pageOf = (status: number): DoubleResponse => ({
  status,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  ...(status !== 204 && { text }),
})

/** Starts a proxy before an HTTP server that forwards requests, and answers some of them with a page. */
export const startPages = async (targetPort: number, status: number, which: Answered): Promise<Pages> => {
  let requests = 0
  let answered = 0
  const forward = (request: IncomingMessage, response: ServerResponse) => {
    const { method, url: path, headers } = request
    const upstream = http.request({ host: '127.0.0.1', port: targetPort, method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  }
  const server = http.createServer((request, response) => {
    const isAnswered = which === 'all' || which === requests
    requests += 1
    if (!isAnswered) return forward(request, response)
    answered += 1
    const page = pageOf(status)
    request.resume().on('end', () => response.writeHead(page.status, page.headers).end(page.text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    answered: () => answered,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Makes a double answer some of its next requests with a page. */
export const pagesOf = (double: Double, status: number, which: Answered): Pages => {
  const times = which === 'all' ? 1_000 : 1
  const fault = { match: /^/, response: pageOf(status), times, ...(which !== 'all' && { skip: which }) }
  double.faults.push(fault)
  return { port: double.port, answered: () => times - fault.times, stop: async () => void double.faults.splice(0) }
}
