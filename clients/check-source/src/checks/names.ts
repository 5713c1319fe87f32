import type { Check } from '../check.ts'
import { expectContent, expectEqual, expectStatus } from '../expect.ts'
import type { Answer } from '../http.ts'
import { onlyPartOf } from '../multipart.ts'

// Percent-encoded as in the URL, and the bytes that they mean.
const fileNames = [
  ['my%20file.v1.tar.gz', 'my file.v1.tar.gz'],
  ['B%C3%BCro.pdf', 'Büro.pdf'],
  ['100%25.txt', '100%.txt'],
] as const

// 255 characters, which are 506 bytes of UTF-8.
const longName = `${'\u00fc'.repeat(251)}.pdf`

// The bytes of a front end of Windows in western Europe: an en dash and umlauts.
const windowsBytes = 'Angebot%20%96%20gr%FCn.pdf'
const windowsName = 'Angebot \u2013 gr\u00fcn.pdf'
const windowsHeader = 'Angebot \x96 gr\xfcn.pdf'

const encodedName = 'B%C3%BCro.pdf'

/**
 * Expects the name in `X-compId` of an answer to info. Servers differ in the characters of a header: the bytes are those of UTF-8 or of
 * ISO-8859-1.
 * @param others further forms, with one character per byte
 */
const expectName = (answer: Answer, name: string, ...others: string[]): void => {
  expectStatus(answer, 200)
  const told = onlyPartOf(answer).headers['x-compid'] ?? ''
  const forms = [name, Buffer.from(name).toString('latin1'), ...others]
  if (!forms.includes(told)) expectEqual('X-compId of info', told, name)
}

/** Checks of the names of components. */
export const nameChecks: readonly Check[] = [
  {
    id: 'comp-ids',
    title: 'a compId may be a file name',
    profile: 'wire',
    facts: ['comp-ids'],
    remedy: 'Decode the percent-encoding of compId once, as UTF-8, and allow blanks, dots and percent signs in it.',
    run: async ({ ask, created }) => {
      for (const [encoded, name] of fileNames) {
        const docId = await created(name, 'text/plain', encoded)
        expectContent(`the component "${name}"`, await ask('get', { docId, compId: encoded }), name)
        expectName(await ask('info', { docId }), name)
      }
    },
  },
  {
    id: 'plus-sign',
    title: 'a plus in a value is a plus',
    profile: 'wire',
    facts: ['plus-sign', 'comp-ids'],
    remedy: 'Do not decode the query as a form: there, a plus is a blank. Base64 signatures and searches contain pluses.',
    run: async ({ ask, created }) => {
      const docId = await created('plus', 'text/plain', 'a+b')
      expectContent('the component a%2Bb', await ask('get', { docId, compId: 'a%2Bb' }), 'plus')
      expectStatus(await ask('get', { docId, compId: 'a%20b' }), 404)
    },
  },
  {
    id: 'comp-ids-long',
    title: 'a compId may have 255 characters outside of ASCII',
    profile: 'wire',
    facts: ['comp-id-length'],
    remedy: 'Count the characters of a compId after decoding it, not its bytes: a name of 255 characters has up to 1,020 bytes in UTF-8.',
    run: async ({ ask, created }) => {
      const compId = encodeURIComponent(longName)
      const docId = await created('long', 'text/plain', compId)
      expectContent('the component with the long name', await ask('get', { docId, compId }), 'long')
      expectName(await ask('info', { docId }), longName)
    },
  },
  {
    id: 'comp-ids-windows',
    title: 'a compId may come in Windows-1252',
    profile: 'wire',
    facts: ['comp-id-charset'],
    remedy:
      'Read a compId whose bytes are not UTF-8 as Windows-1252, and find the component again by the same bytes: systems without Unicode send them.',
    run: async ({ ask, created }) => {
      const docId = await created('windows', 'text/plain', windowsBytes)
      expectContent('the component', await ask('get', { docId, compId: windowsBytes }), 'windows')
      expectName(await ask('info', { docId }), windowsName, windowsHeader)
    },
  },
  {
    id: 'comp-ids-encoded',
    title: 'a compId that is percent-encoded twice is decoded once',
    profile: 'wire',
    facts: ['comp-id-once'],
    remedy: 'Decode compId once. Show the readable name where people see it, and keep the one that came: the source system asks for it.',
    run: async ({ ask, created }) => {
      const compId = encodeURIComponent(encodedName)
      const docId = await created('encoded', 'text/plain', compId)
      expectContent('the component', await ask('get', { docId, compId }), 'encoded')
      expectName(await ask('info', { docId }), encodedName)
    },
  },
]
