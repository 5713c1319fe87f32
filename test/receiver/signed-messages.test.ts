import { createHash } from 'node:crypto'
import { commandRules, type CommandRule } from '../../src/content-server/parameters.ts'
import { parseQuery } from '../../src/receiver/command.ts'
import { decodeSecKey } from '../../src/receiver/signature.ts'
import {
  checkSignedParameters,
  couldBeItsCreate,
  isAccessMode,
  otherDocIds,
  repositoryOf,
  signedMessages,
} from '../../src/receiver/signed-message.ts'

const ruleOf = (command: string, method: string) => commandRules.find((rule) => rule.command === command && rule.methods.includes(method))!

const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'
const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
const begin = `pVersion=0045&contRep=Z1&docId=${docId}`
const end = (mode: string) => `accessMode=${mode}&authId=${authId}&expiration=20301231235959&secKey=MIIB%2Bx%3D%3D`

const messages = (query: string, rule: Pick<CommandRule, 'access' | 'parameters'>) => signedMessages(parseQuery(query), rule).map(String)

// The expected digests come from section 4.1 of the protocol's specification.
describe('the signed message', () => {
  test.each<[string, string, Pick<CommandRule, 'access' | 'parameters'>, string, string, string]>([
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
  ])('of %s matches the test vector', (_, query, rule, message, sha1, sha256) => {
    const [raw] = signedMessages(parseQuery(query), rule)
    expect(String(raw)).toBe(message)
    expect(createHash('sha1').update(raw!).digest('hex')).toBe(sha1)
    expect(createHash('sha256').update(raw!).digest('hex')).toBe(sha256)
  })

  test('keeps the order of the parameters in the URL', () => {
    const query = `get&expiration=20301231235959&authId=CN%3DTST&docId=D1&secKey=x&accessMode=r&contRep=Z1`
    expect(messages(query, ruleOf('get', 'GET'))).toEqual(['20301231235959CN%3DTSTD1rZ1', '20301231235959CN=TSTD1rZ1'])
  })

  test('is checked as it stands in the URL, then decoded if that differs', () => {
    const create = ruleOf('create', 'PUT')
    expect(messages('create&contRep=Z1&docId=D1&compId=a%20%C3%A4%2B+&accessMode=c', create)).toEqual(['Z1D1a%20%C3%A4%2B+c', 'Z1D1a ä++c'])
    expect(messages('create&contRep=Z1&docId=D1&compId=data&accessMode=c', create)).toEqual(['Z1D1datac'])
  })

  test('contains the first of two values of a parameter, whose name is compared without case', () => {
    expect(messages('get&CONTREP=Z1&contRep=Z2&docid=D1&docId=D2&accessmode=r', ruleOf('get', 'GET'))).toEqual(['Z1D1r'])
  })

  test('contains the scanPerformed of an append, and is also checked without it', () => {
    const query = 'append&contRep=Z1&docId=D1&compId=data&scanPerformed=X&accessMode=u'
    expect(messages(query, ruleOf('append', 'PUT'))).toEqual(['Z1D1dataXu', 'Z1D1datau'])
    expect(messages(query.replace('accessMode=u', 'accessMode=c'), ruleOf('create', 'PUT'))).toEqual(['Z1D1datac'])
  })
})

describe('the order and form of the signed parameters', () => {
  const refusal = (query: string, command: string, method: string, order: 'fixed' | 'any' = 'fixed') => {
    try {
      checkSignedParameters(parseQuery(query), ruleOf(command, method), order)
      return undefined
    } catch (thrown) {
      return (thrown as Error).message
    }
  }
  const tail = 'authId=CN%3DTST&expiration=20301231235959&secKey=x'

  test.each([
    ['get', 'GET', `get&${begin}&compId=data&${end('r')}`],
    ['get', 'GET', `get&compId=data&${end('r').replace('accessMode', 'contRep=Z1&docId=D1&accessMode')}&pVersion=0045`],
    ['docGet', 'GET', `docGet&${begin}&${end('r')}`],
    ['info', 'GET', `info&${begin}&resultAs=ascii&${end('r')}`],
    ['create', 'PUT', `create&${begin}&compId=data&docProt=rud&${end('c')}`],
    ['create', 'POST', `create&${begin}&docProt=crud&${end('c')}`],
    ['mCreate', 'POST', `mCreate&${begin}&${end('c')}`],
    ['append', 'PUT', `append&${begin}&compId=data&scanPerformed=X&${end('u')}`],
    ['update', 'PUT', `update&${begin}&compId=data&Content-Length=5&${end('u')}`],
    ['update', 'POST', `update&${begin}&scanPerformed=&${end('u')}`],
    ['delete', 'GET', `delete&${begin}&compId=note&${end('d')}`],
    ['search', 'GET', `search&${begin}&compId=data&pattern=a&caseSensitive=n&${end('r')}`],
    ['attrSearch', 'GET', `attrSearch&${begin}&pattern=0+1+x&${end('r')}`],
  ])('are those of a source system: %s by %s', (command, method, query) => {
    expect(refusal(query, command, method)).toBeUndefined()
  })

  test.each([
    ['get&docId=D1&contRep=Z1&accessMode=r', 'contRep, docId, accessMode, authId, expiration'],
    ['create&contRep=Z1&compId=data&docId=D1&accessMode=c', 'contRep, docId, compId, accessMode, authId, expiration'],
    ['create&contRep=Z1&docId=D1&docProt=rud&compId=data&accessMode=c', 'contRep, docId, compId, docProt, accessMode, authId, expiration'],
    ['delete&contRep=Z1&docId=D1&accessMode=d&compId=data', 'contRep, docId, compId, accessMode, authId, expiration'],
  ])('are refused in another order, unless any is allowed: %s', (query, expected) => {
    const command = query.split('&')[0]!
    const method = command === 'create' ? 'PUT' : 'GET'
    expect(refusal(`${query}&${tail}`, command, method)).toBe(`the signed parameters must stand in the order ${expected}`)
    expect(refusal(`${query}&${tail}`, command, method, 'any')).toBeUndefined()
  })

  test.each([
    'scanPerformed=g-2026r&accessMode=u',
    'scanPerformed=1&accessMode=u',
    'scanPerformed=x&accessMode=u',
    'scanPerformed=%58&accessMode=u',
    'accessMode=u&scanPerformed=X',
  ])('are refused with scanPerformed in another form or place, in any order: %s', (text) => {
    for (const order of ['fixed', 'any'] as const) {
      expect(refusal(`update&contRep=Z1&docId=D1&compId=data&${text}&${tail}`, 'update', 'PUT', order)).toBe(
        'scanPerformed must be X or empty, and stand directly before accessMode',
      )
    }
    expect(refusal(`get&contRep=Z1&docId=D1&${text}&${tail}`, 'get', 'GET')).toBeUndefined()
  })

  test('of an accessMode is crud, or each letter at most once in the order r, c, u, d', () => {
    const letters = ['', 'r', 'c', 'u', 'd']
    const all = letters.flatMap((a) => letters.flatMap((b) => letters.flatMap((c) => letters.map((d) => a + b + c + d))))
    expect([...new Set(all.filter(isAccessMode))].toSorted()).toEqual(
      ['c', 'cd', 'crud', 'cu', 'cud', 'd', 'r', 'rc', 'rcd', 'rcu', 'rcud', 'rd', 'ru', 'rud', 'u', 'ud'].toSorted(),
    )
  })
})

describe('another reading of the signed text', () => {
  const values = { docId: 'D1', between: '', namesComponent: false, accessMode: 'r' }

  test.each<[string, Partial<typeof values>, string[]]>([
    ['one letter', {}, []],
    ['two letters', { accessMode: 'rd' }, ['D1r']],
    ['crud', { accessMode: 'crud' }, ['D1c', 'D1cr', 'D1cru']],
    ['the flag of the scanner', { between: 'X', accessMode: 'u' }, ['D1X']],
    ['a component in between', { between: 'data', namesComponent: true, accessMode: 'cu' }, []],
  ])('with %s can be of a longer docId', (_, changes, docIds) => {
    expect(otherDocIds({ ...values, ...changes })).toEqual(docIds)
  })

  test.each<[Partial<typeof values>, string, boolean]>([
    [{ accessMode: 'rc' }, 'r', true],
    [{ accessMode: 'rcu' }, 'r', true],
    [{ accessMode: 'rc' }, 'rud', false],
    [{ accessMode: 'rc' }, '', false],
    [{ accessMode: 'crud' }, 'c', false],
    [{ accessMode: 'r' }, 'r', false],
    [{ between: 'datarud', namesComponent: true, accessMode: 'crud' }, 'rud', true],
    [{ between: 'data', namesComponent: true, accessMode: 'crud' }, 'rud', false],
  ])('%j can be the create with the docProt %j: %s', (changes, docProt, expected) => {
    expect(couldBeItsCreate({ ...values, ...changes }, docProt)).toBe(expected)
  })

  test.each<[string, string, string[], string]>([
    ['Z', '1XX', ['Z1'], 'Z1'],
    ['Z1', 'XX', ['Z'], 'Z1'],
    ['Z', 'XX', ['Z1'], 'Z'],
    ['Z1', docId, ['Z'], 'Z1'],
    ['Z', `1${docId}`, ['Z1'], 'Z1'],
    ['Z', docId, ['Z0'], 'Z'],
    ['Z0', docId.slice(1), ['Z'], 'Z'],
    ['CRM', 'ORDER1', ['CRMORDER', 'CRMORDER2'], 'CRMORDER'],
    ['Z', '1', ['Z1'], 'Z1'],
    ['Z', 'XX', [], 'Z'],
  ])('of contRep=%s and docId=%s with the rivals %j counts for %s', (contRep, id, rivals, expected) => {
    expect(repositoryOf(contRep, { ...values, docId: id }, rivals)).toBe(expected)
  })
})

describe('a secKey', () => {
  const bytes = Buffer.from([0xfb, 0xff, 0xbe, 0x00])
  test.each(['+/++AA==', ' /  AA==', '+/++AA', '+/++\r\nAA==\r\n'])(
    'is decoded with or without padding, plus signs and line breaks: %j',
    (text) => {
      expect(decodeSecKey(text)).toEqual(bytes)
    },
  )

  test.each(['', '!!!!', 'MIIB===', 'MI=IB', 'MIIBä'])('that is not base64 is undefined: %j', (text) => {
    expect(decodeSecKey(text)).toBeUndefined()
  })
})
