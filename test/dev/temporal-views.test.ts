import { readFile } from 'node:fs/promises'
import { temporalViews, viewLines } from '../../src/dev/temporal-views.ts'

test('the views that script/server prints are the saved views of docs/temporal.md, in their order', async () => {
  const page = await readFile(new URL('../../docs/temporal.md', import.meta.url), 'utf8')
  const [, table = ''] = /\| Saved view \| Query \|\n(.*?)\n\n/s.exec(page)!
  expect([...table.matchAll(/^\| ([\w ]+) \| ``(.+)`` \|$/gm)].map(([, name, query]) => [name, query])).toEqual(
    Object.entries(temporalViews),
  )
})

test('each is an address that opens the list with its query', () => {
  for (const [index, line] of viewLines('http://127.0.0.1:8233').entries()) {
    const [, name, address] = /^ {2}([\w ]+): (\S+)$/.exec(line)!
    const url = new URL(address!)
    expect([name, url.pathname, url.searchParams.get('query')]).toEqual([
      Object.keys(temporalViews)[index],
      '/namespaces/default/workflows',
      Object.values(temporalViews)[index],
    ])
  }
})
