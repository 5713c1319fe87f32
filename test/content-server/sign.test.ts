import { X509Certificate } from 'node:crypto'
import { createRequestSigner, requestQuery } from '../../src/content-server/sign.ts'
import { readSignature, verifies } from '../../src/security/cms.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'

const key = await createThrowAwayKey('rsa', 'TST', 1)
const authId = 'CN=TST,OU=I0099999999,OU=SAPWebAS,O=SAPTrustCommunity,C=DE'
const signer = createRequestSigner({ ...key, authId })
const { publicKey } = new X509Certificate(key.certificate)
const expiresAt = new Date('2030-12-31T23:59:59Z')
const signedText = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE20301231235959'
const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'

const split = (query: string) => {
  const [url, secKey] = query.split('&secKey=')
  return { url, signature: readSignature(Buffer.from(decodeURIComponent(secKey!), 'base64'))! }
}

describe('the query of a request', () => {
  test.each([
    ['get', 'GET', { compId: 'data' }, `Z1${docId}r${signedText}`],
    ['create', 'PUT', { compId: 'data', docProt: 'rud' }, `Z1${docId}datarudc${signedText}`],
    ['delete', 'GET', { compId: 'note' }, `Z1${docId}noted${signedText}`],
  ] as const)('of a signed %s covers the raw values that source systems sign', (command, method, parameters, message) => {
    const { signature } = split(
      requestQuery(command, method, { pVersion: '0045', contRep: 'Z1', docId, ...parameters }, { signer, expiresAt }),
    )
    expect(verifies(signature, Buffer.from(message), publicKey)).toBe(true)
    expect(verifies(signature, Buffer.from(`${message}0`), publicKey)).toBe(false)
  })

  test('has the parameters in the order of source systems, encoded as they encode them', () => {
    const { url } = split(
      requestQuery(
        'get',
        'GET',
        { compId: "a b+ä~'.pdf", docId: 'D1', contRep: 'Z1', pVersion: '0046', fromOffset: '1' },
        { signer, expiresAt },
      ),
    )
    expect(url).toBe(
      'get&pVersion=0046&contRep=Z1&docId=D1&compId=a%20b%2B%C3%A4%7E%27.pdf&fromOffset=1&accessMode=r&authId=CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE&expiration=20301231235959',
    )
  })

  test('is not signed without a signer, and for commands that nobody signs', () => {
    expect(requestQuery('get', 'GET', { contRep: 'Z1', docId: 'D1' })).toBe('get&contRep=Z1&docId=D1')
    expect(requestQuery('serverInfo', 'GET', { contRep: 'Z1' }, { signer })).toBe('serverInfo&contRep=Z1')
  })

  test('expires after two hours', () => {
    const before = Date.now()
    const [, expiration] = /expiration=(\d{14})/.exec(requestQuery('info', 'GET', { docId: 'D1' }, { signer }))!
    const [year, month, day, hour, minute, second] = expiration!.match(/^\d{4}|\d\d/g)!
    const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    expect(time).toBeGreaterThan(before + 7_190_000)
    expect(time).toBeLessThanOrEqual(Date.now() + 7_200_000)
  })
})
