import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { codePages } from '../../src/domain/code-pages.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const scene = share(await startScene())

test.each([
  ['windows-1252', '%84Pr%FCfung%93.pdf', '„Prüfung“.pdf'],
  ['windows-1250', 'P%F8%EDloha.pdf', 'Příloha.pdf'],
  ['windows-1251', '%D1%F7%B8%F2.pdf', 'Счёт.pdf'],
  ['shift_jis', '%90%BF%8B%81%8F%91.pdf', '請求書.pdf'],
  ['gb18030', '%B7%A2%C6%B1.pdf', '发票.pdf'],
  ['big5', '%B5o%B2%BC.pdf', '發票.pdf'],
  ['euc-kr', '%BC%DB%C0%E5.hwp', '송장.hwp'],
  ['shift_jis', '%E8%AB%8B%E6%B1%82%E6%9B%B8.pdf', '請求書.pdf'],
])('in a repository with the code page %s, %s is %s: in a URL, and as the name of a part', async (codePage, sent, name) => {
  const workspace = await scene.workspace()
  await scene.db('repositories').where({ id: workspace.repositoryId }).update({ code_page: codePage })
  const { source } = workspace
  expect((await source.create('PUT', 'x', { compId: sent })).status).toBe(201)
  const bytes = sent.replaceAll(/%(..)/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
  const body = Buffer.from(`--B\r\nX-compId: ${bytes}\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--\r\n`, 'latin1')
  const posted = { method: 'POST' as const, headers: { 'content-type': 'multipart/form-data; boundary=B' }, body }
  expect((await source.call('create&pVersion=0045&contRep=Z1&docId=POST', posted)).status).toBe(201)
  const rows = await scene.db('documents').where({ workspace_id: workspace.workspaceId }).select('comp_id')
  expect(rows).toEqual([{ comp_id: name }, { comp_id: name }])
  for (const docId of ['PUT', 'POST']) {
    for (const compId of [sent, encodeURIComponent(name)]) {
      expect(String((await source.get(docId, `&compId=${compId}`)).body)).toBe('x')
    }
  }
})

/** Starts a content server that compares the bytes of names, and has one component with this name, as a query has it. */
const startByteServer = async (sent: string, contentType: string) => {
  const bytes = sent.replaceAll(/%(..)/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
  const asked: string[] = []
  const server = createServer((request, response) => {
    const [command, ...parameters] = request.url!.slice(request.url!.indexOf('?') + 1).split('&')
    const compId = parameters.find((parameter) => parameter.startsWith('compId='))?.slice('compId='.length)
    asked.push(`${command} ${compId ?? ''}`)
    const docId = parameters.find((parameter) => parameter.startsWith('docId='))
    if (command === 'info' && docId === 'docId=D1') {
      const head = `X-compId: ${bytes}\r\nX-Content-Length: 5\r\nContent-Type: ${contentType}\r\nContent-Length: 0\r\n`
      response.setHeader('content-type', 'multipart/form-data; boundary=B')
      return void response.end(Buffer.from(`--B\r\n${head}\r\n\r\n--B--\r\n`, 'latin1'))
    }
    if (command === 'get' && compId === sent) {
      response.setHeader('X-compId', bytes)
      response.setHeader('Content-Type', contentType)
      // A text would be written together with the headers, as UTF-8.
      return void response.end(Buffer.from('hello'))
    }
    response.statusCode = docId === 'docId=BROKEN' ? 500 : 404
    response.setHeader('X-ErrorDescription', bytes)
    return void response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}

test.each([
  ['shift_jis', '%90%BF%8B%81%8F%91.pdf', '請求書.pdf'],
  ['gb18030', '%B7%A2%C6%B1.pdf', '发票.pdf'],
  ['windows-1251', '%D1%F7%B8%F2.pdf', 'Счёт.pdf'],
  ['windows-1252', 'Pr%FCfung.pdf', 'Prüfung.pdf'],
  ['shift_jis', 'Pr%C3%BCfung.pdf', 'Prüfung.pdf'],
])(
  'an upstream with the code page %s is asked for %s by its own bytes, and its names and messages are read',
  async (codePage, sent, name) => {
    const bytes = sent.replaceAll(/%(..)/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    await using old = await startByteServer(sent, `application/pdf; name="${bytes}"`)
    const { source, repositoryId, ask, captureOf } = await scene.workspace()
    const unused = { auth_id: null, certificate: null, ca_certificate: null, proxy_url: null, allowed_cidrs: null }
    const upstream = JSON.stringify({ url: old.url, cont_rep: 'Z1', ...unused, delivers: false })
    await scene.db('repositories').where({ id: repositoryId }).update({ code_page: codePage, upstream })
    for (const compId of [encodeURIComponent(name), sent]) {
      const answer = await source.get('D1', `&compId=${compId}`)
      expect([answer.status, String(answer.body)]).toEqual([200, 'hello'])
    }
    const [document] = await until(
      'the document is kept',
      async () => (await ask('GET', '/documents')).json.data,
      (data: { attributes: { content_type: string } }[]) => data.length === 1,
    )
    expect(document!.attributes).toMatchObject({ comp_id: name, content_type: `application/pdf; name="${name}"` })
    const found = await ask('GET', `/documents/search?content_type=${encodeURIComponent(document!.attributes.content_type)}`)
    expect(found.json.data).toHaveLength(sent.includes('%C3') || codePage === 'windows-1252' ? 1 : 0)

    const failed = await source.get('BROKEN')
    expect(failed.status).toBe(503)
    const failures = await until(
      'the failure is recorded',
      () => scene.db('upstream_failures').where({ repository_id: repositoryId }).select('last_error'),
      (rows) => rows.length === 1,
    )
    expect(failures).toEqual([{ last_error: expect.stringContaining(name) }])

    const posted = await source.create('D2', 'x', { compId: sent, headers: { 'content-type': `text/plain; name="${bytes}"` } })
    const capture = await captureOf(posted)
    expect(capture).toMatchObject({ code_page: codePage, request_content_type: `text/plain; name="${name}"` })
    expect(capture.request_headers['content-type']).toBe(`text/plain; name="${name}"`)
  },
)

test('Node decodes every code page', () => {
  for (const codePage of codePages) expect(() => new TextDecoder(codePage)).not.toThrow()
})
