import { createHash } from 'node:crypto'
import { parseQuery } from '../../src/receiver/command.ts'
import { commandRules, type CommandRule } from '../../src/receiver/parameters.ts'
import { decodeSecKey, signedMessages } from '../../src/receiver/signed-message.ts'

const ruleOf = (command: string, method: string) => commandRules.find((rule) => rule.command === command && rule.methods.includes(method))!

const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'
const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
const begin = `pVersion=0045&contRep=Z1&docId=${docId}`
const end = (mode: string) => `accessMode=${mode}&authId=${authId}&expiration=20301231235959&secKey=MIIB%2Bx%3D%3D`

const messages = (query: string, rule: Pick<CommandRule, 'access' | 'parameters'>) => signedMessages(parseQuery(query), rule).map(String)

// section 4.1 of the protocol's facts
describe('the signed message', () => {
  it.each<[string, string, Pick<CommandRule, 'access' | 'parameters'>, string, string, string]>([
    [
      'get',
      `get&${begin}&compId=data&fromOffset=0&${end('r')}`,
      ruleOf('get', 'GET'),
      `Z1${docId}r${authId}20301231235959`,
      '65b5b8ee4fb4831bbd7a4f79f8f01251ea784fc2',
      '38a6704fdbede162763ab3b5a0e77abf6f0df9ac4c5bc4e6aa2de5ac26cbc810',
    ],
    [
      'create by PUT',
      `create&${begin}&compId=data&docProt=rud&${end('c')}`,
      ruleOf('create', 'PUT'),
      `Z1${docId}datarudc${authId}20301231235959`,
      '70c4b5255b544f91e983ed2e5a37c197d13e0af2',
      'b71aea25151bcec4f04c661570fdd861783384636d572b690413d1e1d3e7ffda',
    ],
    [
      'delete of a component',
      `delete&${begin}&compId=note&${end('d')}`,
      ruleOf('delete', 'GET'),
      `Z1${docId}noted${authId}20301231235959`,
      'd1f49db32026f0e324b476cb288fa1cd01dbfd10',
      'd186d9c66f3d284e89c7b7c31cf59fa02a9d4f1fc4f24ff4885cd4800f838fae',
    ],
  ])('of %s is the one of the vectors', (_, query, rule, message, sha1, sha256) => {
    const [raw] = signedMessages(parseQuery(query), rule)
    expect(String(raw)).toBe(message)
    expect(createHash('sha1').update(raw!).digest('hex')).toBe(sha1)
    expect(createHash('sha256').update(raw!).digest('hex')).toBe(sha256)
  })

  it('keeps the order of the URL, whatever that is', () => {
    const query = `get&expiration=20301231235959&authId=CN%3DTST&docId=D1&secKey=x&accessMode=r&contRep=Z1`
    expect(messages(query, ruleOf('get', 'GET'))).toEqual(['20301231235959CN%3DTSTD1rZ1', '20301231235959CN=TSTD1rZ1'])
  })

  it('is tried decoded after it was tried as it stands, and only where that is something else', () => {
    const create = ruleOf('create', 'PUT')
    expect(messages('create&contRep=Z1&docId=D1&compId=a%20%C3%A4%2B+&accessMode=c', create)).toEqual(['Z1D1a%20%C3%A4%2B+c', 'Z1D1a ä++c'])
    expect(messages('create&contRep=Z1&docId=D1&compId=data&accessMode=c', create)).toEqual(['Z1D1datac'])
  })

  it('covers the first of two values, which is also the one that counts, however the name is written', () => {
    expect(messages('get&CONTREP=Z1&contRep=Z2&docid=D1&docId=D2&accessmode=r', ruleOf('get', 'GET'))).toEqual(['Z1D1r'])
  })

  it('covers scanPerformed of what changes a component, and is tried without it', () => {
    const query = 'append&contRep=Z1&docId=D1&compId=data&scanPerformed=X&accessMode=u'
    expect(messages(query, ruleOf('append', 'PUT'))).toEqual(['Z1D1dataXu', 'Z1D1datau'])
    expect(messages(query.replace('accessMode=u', 'accessMode=c'), ruleOf('create', 'PUT'))).toEqual(['Z1D1datac'])
  })
})

describe('a secKey', () => {
  const bytes = Buffer.from([0xfb, 0xff, 0xbe, 0x00])
  it.each(['+/++AA==', ' /  AA==', '+/++AA', '+/++\r\nAA==\r\n'])('is read in any state in which it arrives: %j', (text) => {
    expect(decodeSecKey(text)).toEqual(bytes)
  })

  it.each(['', '!!!!', 'MIIB===', 'MI=IB', 'MIIBä'])('that is no base64 is told from one: %j', (text) => {
    expect(decodeSecKey(text)).toBeUndefined()
  })
})
