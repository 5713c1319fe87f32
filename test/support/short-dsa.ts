import { execFile } from 'node:child_process'
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { BitString, fromBER, Integer, ObjectIdentifier, Sequence } from 'asn1js'

const power = (base: bigint, exponent: bigint, modulus: bigint): bigint => {
  let result = 1n
  for (let square = base % modulus, rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % modulus) {
    if (rest & 1n) result = (result * square) % modulus
  }
  return result
}

/** Creates a DSA key of 512 bits, as the first source systems used, and a signature. OpenSSL refuses such keys, so both are computed here. */
export const signWithShortDsa = async (message: string): Promise<{ key: KeyObject; signature: Buffer }> => {
  const size = ['-pkeyopt', 'dsa_paramgen_bits:512', '-pkeyopt', 'dsa_paramgen_q_bits:160']
  const { stdout } = await promisify(execFile)('openssl', ['genpkey', '-genparam', '-algorithm', 'DSA', ...size])
  const parameters = fromBER(Buffer.from(stdout.replaceAll(/-----.*-----/g, ''), 'base64')).result as Sequence
  const [p, q, g] = parameters.valueBlock.value.map((block) => (block as Integer).toBigInt()) as [bigint, bigint, bigint]
  const [secret, nonce] = [0x1234567890abcdefn, 0xfedcba0987654321n]
  const r = power(g, nonce, p) % q
  const digest = BigInt(`0x${createHash('sha1').update(message).digest('hex')}`)
  const s = (power(nonce, q - 2n, q) * (digest + secret * r)) % q
  const algorithm = new Sequence({ value: [new ObjectIdentifier({ value: '1.2.840.10040.4.1' }), parameters] })
  const publicKey = new BitString({ valueHex: Integer.fromBigInt(power(g, secret, p)).toBER() })
  return {
    key: createPublicKey({ key: Buffer.from(new Sequence({ value: [algorithm, publicKey] }).toBER()), format: 'der', type: 'spki' }),
    signature: Buffer.from(new Sequence({ value: [Integer.fromBigInt(r), Integer.fromBigInt(s)] }).toBER()),
  }
}
