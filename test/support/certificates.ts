import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Authority extends AsyncDisposable {
  /** The certificate as PEM. */
  certificate: string
  /** Returns key and certificate of a server, signed by this authority. */
  issue(subjectAltName: string, validity?: string[]): Promise<{ key: string; cert: string }>
  /** Returns key and certificate of a client. @param keyType for `openssl req -newkey`; an elliptic curve by default */
  issueClient(days: number, keyType?: string[]): Promise<{ key: string; cert: string }>
  remove(): Promise<void>
}

/** Creates a certificate authority that no system trusts by default. */
export const createAuthority = async (): Promise<Authority> => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-ca-'))
  const openssl = (...command: string[]) => run('openssl', command, { cwd: folder })
  const ellipticCurve = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const sign = async (subject: string, extensions: string, validity: string[], keyType = ellipticCurve) => {
    await openssl('req', '-nodes', '-newkey', ...keyType, '-keyout', 'issued.key', '-out', 'issued.csr', '-subj', subject)
    await writeFile(join(folder, 'extensions'), `${extensions}\n`)
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'extensions', ...validity]
    await openssl('x509', '-req', '-in', 'issued.csr', '-out', 'issued.pem', ...signed)
    return { key: await readFile(join(folder, 'issued.key'), 'utf8'), cert: await readFile(join(folder, 'issued.pem'), 'utf8') }
  }
  await openssl(
    'req',
    '-x509',
    '-nodes',
    '-newkey',
    ...ellipticCurve,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=Relay test authority',
  )
  const remove = () => rm(folder, { recursive: true })
  return {
    certificate: await readFile(join(folder, 'ca.pem'), 'utf8'),
    issue: (subjectAltName, validity = ['-days', '1']) => sign('/CN=target', `subjectAltName=${subjectAltName}`, validity),
    issueClient: (days, keyType) => sign('/CN=relay', 'extendedKeyUsage=clientAuth', ['-days', String(days)], keyType),
    remove,
    [Symbol.asyncDispose]: remove,
  }
}
