import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Options of `openssl genpkey` for the kinds of keys that source systems use or used. */
export const keyKinds = {
  'DSA 1024': { parameters: ['-algorithm', 'DSA', '-pkeyopt', 'dsa_paramgen_bits:1024', '-pkeyopt', 'dsa_paramgen_q_bits:160'] },
  'DSA 2048': { parameters: ['-algorithm', 'DSA', '-pkeyopt', 'dsa_paramgen_bits:2048', '-pkeyopt', 'dsa_paramgen_q_bits:256'] },
  'RSA 512': { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:512'] },
  'RSA 1024': { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'] },
  'RSA 2048': { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'] },
  'RSA-PSS 2048': { key: ['-algorithm', 'RSA-PSS', '-pkeyopt', 'rsa_keygen_bits:2048'] },
  secp112r1: { key: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp112r1'] },
  'P-192': { key: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-192'] },
  'P-256': { key: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'] },
  'P-521': { key: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-521'] },
} as const satisfies Record<string, { key: string[] } | { parameters: string[] }>

export type KeyKind = keyof typeof keyKinds

export interface SigningOptions {
  digest?: string
  /** Further options of `openssl cms -sign`. */
  options?: string[]
  /** `smime` is the older of the two commands. */
  program?: 'cms' | 'smime'
}

export interface Signer extends AsyncDisposable {
  /** The certificate as PEM. */
  pem: string
  /** The certificate as DER. */
  der: Buffer
  /** A PKCS#7 message that contains only the certificate, as DER. */
  pkcs7: Buffer
  /** Returns a CMS SignedData, detached and as DER unless an option says otherwise. */
  sign(message: string | Buffer, options?: SigningOptions): Promise<Buffer>
  remove(): Promise<void>
}

/** Creates a key pair with a self-signed certificate, as an application server does. */
export const createSigner = async (
  kind: KeyKind,
  subject = '/C=DE/O=SAP Trust Community/OU=SAP Web AS/CN=TST',
  certificateDigest = 'sha256',
): Promise<Signer> => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-signer-'))
  const openssl = (...command: string[]) => run('openssl', command, { cwd: folder })
  const keyOptions = keyKinds[kind]
  if ('parameters' in keyOptions) {
    await openssl('genpkey', '-genparam', ...keyOptions.parameters, '-out', 'parameters.pem')
    await openssl('genpkey', '-paramfile', 'parameters.pem', '-out', 'key.pem')
  } else {
    await openssl('genpkey', ...keyOptions.key, '-out', 'key.pem')
  }
  await openssl(
    'req',
    '-x509',
    '-new',
    `-${certificateDigest}`,
    '-key',
    'key.pem',
    '-out',
    'certificate.pem',
    '-days',
    '30',
    '-subj',
    subject,
  )
  await openssl('x509', '-in', 'certificate.pem', '-outform', 'DER', '-out', 'certificate.der')
  await openssl('crl2pkcs7', '-nocrl', '-certfile', 'certificate.pem', '-outform', 'DER', '-out', 'certificate.p7b')
  let signatures = 0
  const remove = () => rm(folder, { recursive: true })
  return {
    pem: await readFile(join(folder, 'certificate.pem'), 'utf8'),
    der: await readFile(join(folder, 'certificate.der')),
    pkcs7: await readFile(join(folder, 'certificate.p7b')),
    sign: async (message, { digest = 'sha1', options = ['-nocerts'], program = 'cms' } = {}) => {
      signatures += 1
      const [content, signature] = [`${signatures}.message`, `${signatures}.p7s`]
      await writeFile(join(folder, content), message)
      const identity = ['-signer', 'certificate.pem', '-inkey', 'key.pem', '-md', digest]
      await openssl(program, '-sign', '-binary', ...identity, ...options, '-in', content, '-outform', 'DER', '-out', signature)
      return readFile(join(folder, signature))
    },
    remove,
    [Symbol.asyncDispose]: remove,
  }
}
