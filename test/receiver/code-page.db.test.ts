import { codePages } from '../../src/domain/code-pages.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

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

test('Node decodes every code page', () => {
  for (const codePage of codePages) expect(() => new TextDecoder(codePage)).not.toThrow()
})
