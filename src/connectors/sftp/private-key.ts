import { createPrivateKey, type KeyObject } from 'node:crypto'
import { createRequire } from 'node:module'

// Required at the first key, not imported: a schema does not wait, and ssh2 costs a process 18 MiB and 0.08 CPU-s.
const require = createRequire(import.meta.url)
const isReadable = (text: string, passphrase?: string): boolean => {
  const key = (require('ssh2') as typeof import('ssh2')).utils.parseKey(text, passphrase)
  return !(key instanceof Error) && key.isPrivateKey()
}

/** A private key in a form that ssh2 reads. */
interface PrivateKey {
  privateKey: string
  passphrase?: string
}

const block = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[^]*?-----END \1-----/

/**
 * Reads a private key in OpenSSH form or in one of the PEM forms (PKCS#1, SEC1, PKCS#8), with text around it.
 * @returns why it cannot be used, which never quotes it
 */
export const readPrivateKey = (text: string, passphrase: string | undefined): PrivateKey | string => {
  // A variable of an environment may contain \n for the ends of lines.
  const lines = text.replaceAll('\\n', '\n').split(/\r\n|\r|\n/)
  const clean = lines.map((line) => line.trim()).join('\n')
  const found = block.exec(clean)?.[0]
  const key = found === undefined ? text : `${found}\n`
  if (isReadable(key, passphrase)) return { privateKey: key, ...(passphrase !== undefined && { passphrase }) }
  if (found === undefined) return otherText(clean)
  try {
    const privateKey = sshForm(createPrivateKey({ key, format: 'pem', ...(passphrase !== undefined && { passphrase }) }))
    if (privateKey !== undefined && isReadable(privateKey)) return { privateKey }
    return 'is a key of a type that SSH does not use; use RSA, ECDSA (NIST curves) or Ed25519'
  } catch {
    return 'is no private key, or the passphrase does not open it'
  }
}

const otherText = (text: string): string => {
  if (/^(ssh-|ecdsa-|sk-)|BEGIN (RSA )?PUBLIC KEY|BEGIN SSH2 PUBLIC KEY/m.test(text)) return 'is a public key; the private key is needed'
  if (text.includes('PuTTY-User-Key-File-3')) return 'has the form of PuTTY 3; export it in OpenSSH form'
  return 'is no private key, or the passphrase does not open it'
}

/** Returns a key without a passphrase, in the form of its type that ssh2 reads. */
const sshForm = (key: KeyObject): string | undefined => {
  const type = key.asymmetricKeyType
  if (type === 'rsa') return key.export({ type: 'pkcs1', format: 'pem' }).toString()
  if (type === 'ec') return key.export({ type: 'sec1', format: 'pem' }).toString()
  return type === 'ed25519' ? openSshForm(key) : undefined
}

/** Returns an Ed25519 key in OpenSSH form (PROTOCOL.key of OpenSSH): no PEM form that ssh2 reads has it. */
const openSshForm = (key: KeyObject): string => {
  const { d = '', x = '' } = key.export({ format: 'jwk' })
  const [seed, publicKey] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  const type = sized('ssh-ed25519')
  const secret = Buffer.concat([Buffer.alloc(8), type, sized(publicKey), sized(Buffer.concat([seed, publicKey])), sized('')])
  const padding = Buffer.from([1, 2, 3, 4, 5, 6, 7]).subarray(0, (8 - (secret.length % 8)) % 8)
  const bytes = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    sized('none'),
    sized('none'),
    sized(''),
    Buffer.from([0, 0, 0, 1]),
    sized(Buffer.concat([type, sized(publicKey)])),
    sized(Buffer.concat([secret, padding])),
  ])
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${bytes.toString('base64').replaceAll(/.{70}/g, '$&\n')}\n-----END OPENSSH PRIVATE KEY-----\n`
}

const sized = (value: string | Buffer): Buffer => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
