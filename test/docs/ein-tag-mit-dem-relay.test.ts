import { readdir, readFile } from 'node:fs/promises'
import { businessObjectText } from '../../src/domain/business-object.ts'

const page = await readFile(new URL('../../docs/ein-tag-mit-dem-relay.md', import.meta.url), 'utf8')
const folder = new URL('../../console/texts/', import.meta.url)

const textsOf = (texts: unknown): string[] => {
  if (typeof texts === 'string') return [texts]
  return typeof texts === 'object' && texts !== null ? Object.values(texts).flatMap(textsOf) : []
}

test('the German page for clerks names buttons and fields as the console does', async () => {
  const names = (await readdir(folder)).filter((name) => name !== 'plural.ts')
  const catalogues = await Promise.all(names.map((name) => import(new URL(name, folder).href) as Promise<{ de?: object }>))
  const german = catalogues.flatMap(({ de }) => textsOf(de))
  const { de } = (await import(new URL('document.ts', folder).href)) as { de: { verdict: (done: number, of: number) => string } }
  const shown = [...german, de.verdict(2, 3)]
  const named = [...page.replaceAll(/\*\*[^*]+\*\*/g, '').matchAll(/\*([^*]+)\*/g)].map(([, name]) => name!)
  expect(named.length).toBeGreaterThan(15)
  expect(named.filter((name) => !shown.some((text) => text === name || text.startsWith(`${name}.`)))).toEqual([])
})

test('it shows a business object as the console does', () => {
  expect(page).toContain(businessObjectText({ type: 'BKPF', key: '100019000047112026' }, 'de'))
})
