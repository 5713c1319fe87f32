import type { Algorithms, ServerHostKeyAlgorithm } from 'ssh2'
import type { SftpConfig } from './schema.ts'

// The types of host keys, and the algorithms of each, in the order of preference. An ECDSA key of each curve is a key of its own.
const hostKeyTypes: Readonly<Record<string, readonly ServerHostKeyAlgorithm[]>> = {
  'ssh-ed25519': ['ssh-ed25519'],
  'ecdsa-sha2-nistp256': ['ecdsa-sha2-nistp256'],
  'ecdsa-sha2-nistp384': ['ecdsa-sha2-nistp384'],
  'ecdsa-sha2-nistp521': ['ecdsa-sha2-nistp521'],
  'ssh-rsa': ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'],
}

const legacyHostKeyTypes: typeof hostKeyTypes = { 'ssh-dss': ['ssh-dss'] }

/** What `legacy` adds: broken or weak (RFC 9142, RFC 8758), and all that some devices have. It is offered after everything else. */
const legacy = {
  kex: { append: ['diffie-hellman-group14-sha1', 'diffie-hellman-group-exchange-sha1', 'diffie-hellman-group1-sha1'] },
  cipher: { append: ['aes256-cbc', 'aes192-cbc', 'aes128-cbc', '3des-cbc'] },
  hmac: { append: ['hmac-sha1-96', 'hmac-md5', 'hmac-md5-96'] },
} as unknown as Pick<Algorithms, 'kex' | 'cipher' | 'hmac'>

/** Returns the types of host keys that a destination accepts. @param first is asked for before the others */
export const acceptedHostKeyTypes = ({ algorithms }: Pick<SftpConfig, 'algorithms'>, first?: string): string[] => {
  const types = Object.keys({ ...hostKeyTypes, ...(algorithms === 'legacy' && legacyHostKeyTypes) })
  return first !== undefined && types.includes(first) ? [first, ...types.filter((type) => type !== first)] : types
}

/** Returns what the relay offers to a server. @param types of host keys that the server may present */
export const offeredAlgorithms = ({ algorithms }: Pick<SftpConfig, 'algorithms'>, types: readonly string[]): Algorithms => ({
  serverHostKey: types.flatMap((type) => (hostKeyTypes[type] ?? legacyHostKeyTypes[type])!),
  ...(algorithms === 'legacy' && legacy),
})

/** Returns the type of a host key, with which its bytes begin. */
export const hostKeyTypeOf = (key: Buffer): string => key.subarray(4, 4 + key.readUInt32BE(0)).toString('latin1')
