import { integer, oid, sequence, setOf, tagged } from '../../../src/security/der.ts'

const [signedData, data] = [oid('1.2.840.113549.1.7.2'), oid('1.2.840.113549.1.7.1')]

/** Returns a PKCS#7 message that contains only certificates, as source systems send it, in their order here. All are DER. */
export const certificateMessageOf = (...certificates: Buffer[]): Buffer =>
  sequence(signedData, tagged(0, sequence(integer(Buffer.from([1])), setOf(), sequence(data), tagged(0, ...certificates), setOf())))
