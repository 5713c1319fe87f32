import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAuthority } from '../support/certificates.ts'
import { startForwardProxy } from '../support/forward-proxy.ts'
import { startHttpTarget } from '../support/http-target.ts'
import type { TlsJob, TlsReport } from './deliver-over-tls.ts'
import { loadRigs } from './rig.ts'

const cases = (await loadRigs()).flatMap(({ tlsCases }) => tlsCases)
const childProgram = fileURLToPath(new URL('./deliver-over-tls.ts', import.meta.url))
const untrusted = 'certificate_refused'

describe('in a process with NODE_EXTRA_CA_CERTS', () => {
  let folder: string
  let authority: Awaited<ReturnType<typeof createAuthority>>
  let stranger: typeof authority
  let child: ChildProcess
  const deliver = async (job: TlsJob) => {
    child.send(job)
    const [report] = (await once(child, 'message')) as [TlsReport]
    return report
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'relay-authorities-'))
    authority = await createAuthority()
    stranger = await createAuthority()
    const file = join(folder, 'ca.pem')
    await writeFile(file, authority.certificate)
    child = fork(childProgram, { execArgv: ['--disable-warning=ExperimentalWarning'], env: { ...process.env, NODE_EXTRA_CA_CERTS: file } })
    await once(child, 'message')
  })
  afterAll(async () => {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    await authority.remove()
    await stranger.remove()
    await rm(folder, { recursive: true })
  })

  test.each(cases)('$name trusts the authority of that file, unless the destination names another one', async ({ name, listen }) => {
    const known = await listen(await authority.issue('IP:127.0.0.1'))
    const unknown = await listen(await stranger.issue('IP:127.0.0.1'))
    const codes = {
      ofTheFile: (await deliver({ name, port: known.port })).code,
      ofNobody: (await deliver({ name, port: unknown.port })).code,
      ofTheDestination: (await deliver({ name, port: unknown.port, caCertificate: stranger.certificate })).code,
      notOfTheDestination: (await deliver({ name, port: known.port, caCertificate: stranger.certificate })).code,
    }
    await known.stop()
    await unknown.stop()
    // The servers of some kinds answer no more than TLS.
    for (const code of [codes.ofTheFile, codes.ofTheDestination])
      expect([untrusted, 'tls_failed', 'connection_lost', 'timeout']).not.toContain(code)
    expect([codes.ofNobody, codes.notOfTheDestination]).toEqual([untrusted, untrusted])
  })

  test('a proxy of the operator may have a certificate of the file', async () => {
    const target = await startHttpTarget(await authority.issue('IP:127.0.0.1'))
    const trusted = await startForwardProxy(await authority.issue('IP:127.0.0.1'))
    const foreign = await startForwardProxy(await stranger.issue('IP:127.0.0.1'))
    const job = { name: 'webhook', port: target.port }
    expect(await deliver({ ...job, proxyUrl: trusted.urlWithLogin })).toEqual({})
    expect(trusted.targets).toEqual([`127.0.0.1:${target.port}`])
    expect(await deliver({ ...job, proxyUrl: foreign.urlWithLogin })).toEqual({
      code: 'proxy_failed',
      message: expect.stringMatching(/^the proxy of RELAY_OUTBOUND_PROXY cannot be reached \(UNABLE_TO_[A-Z_]+\)$/),
    })
    expect(foreign.targets).toEqual([])
    await trusted.stop()
    await foreign.stop()
    await target.stop()
  })
})
