import type { HostileRequest } from './measured-relay.ts'

// In one connection, without waiting for answers. The relay runs 16 of them at a time and then closes the connection; what it has read of
// the others is parsed to its end.
const pipelined = 3_000

/** Requests of every surface that need no key, or a look into the database. */
export const pipelinedRequests = (workspace: string, headers: Record<string, string>): HostileRequest[] => {
  const receiver = `/receiver/${workspace}`
  const requests: Omit<HostileRequest, 'covers' | 'pipelined'>[] = [
    // Of one repository: a turn can contain the answers to all 16, and that of 5,000 repositories is measured by itself.
    { name: 'serverInfo', path: `${receiver}?serverInfo&pVersion=0047&contRep=Z1` },
    { name: 'getCert', path: `${receiver}?getCert&pVersion=0047&contRep=Z1` },
    { name: 'get', path: `${receiver}?get&pVersion=0047&contRep=Z1&docId=NONE&compId=data` },
    { name: 'an unknown command', path: `${receiver}?unknown` },
    { name: 'create', method: 'PUT', path: `${receiver}?create&pVersion=0047&contRep=Z1&docId=PIPE&compId=data`, body: 'hello' },
    { name: 'a list of the API', path: `/api/${workspace}/documents`, headers },
    { name: 'a wrong key', path: `/api/${workspace}/documents`, headers: { authorization: 'Bearer relay_wrong' } },
    { name: 'the bridge', method: 'POST', path: `/bridge/${workspace}/rfc/Z_NONE`, headers, body: '{}' },
    { name: 'a download', path: '/download/none?signature=AAAA&expires=1' },
    { name: 'the reference', path: '/openapi.json' },
    { name: 'the console', path: '/console' },
    { name: 'nothing', path: '/' },
    { name: 'the probe of the public port', path: '/healthz' },
    { name: 'a probe', path: '/healthz', isProbe: true },
    { name: 'the metrics', path: '/metrics', isProbe: true },
  ]
  return requests.map((request) => ({ ...request, covers: 'pipelined', name: `${request.name}, pipelined`, pipelined }))
}
