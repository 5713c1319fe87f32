import { readFile } from 'node:fs/promises'
import { en } from '../../console/texts/common.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = await read('docs/runbook.md')
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((section) => ({ name: section.split('\n', 1)[0]!, first: section.split('\n\n')[1]!.replaceAll('\n', ' ') }))

const names: Record<string, string> = en.screens

/** Returns the filters that the lists of the console take from their address. */
const filtersOf = async (screen: string): Promise<string[]> => {
  const [, list = ''] = /const filterNames = \[(.*?)\]/s.exec(await read(`console/screens/${screen}.ts`)) ?? []
  return [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name!)
}

test('every case of the runbook begins with the screen of the console, or says that none shows it', () => {
  expect(sections.length).toBeGreaterThan(30)
  for (const { name, first } of sections) {
    expect({ name, first }).toEqual({ name, first: expect.stringMatching(/^\*\*Screen\.\*\* (?:None: |.*(?:`\/console\/|page says ))/) })
  }
})

test('every screen that the runbook names exists, under the name that the menu has, with the filters of its address', async () => {
  const screens = await read('console/screens.ts')
  const addresses = [...page.matchAll(/(?:\*([\w ]+)\* \()?`\/console\/(\w+)(?:\?([\w=&]+))?`/g)]
  expect(addresses.length).toBeGreaterThan(25)
  for (const [, shown, screen = '', query = ''] of addresses) {
    expect({ screen, exists: screens.includes(`\n  ${screen}: {`) }).toEqual({ screen, exists: true })
    if (shown !== undefined) expect({ screen, shown }).toEqual({ screen, shown: names[screen] })
    const known = query === '' ? [] : await filtersOf(screen)
    for (const name of new URLSearchParams(query).keys())
      expect({ screen, known }).toEqual({ screen, known: expect.arrayContaining([name]) })
  }
})

test('every screen that the runbook quotes says these words', async () => {
  const quoted = [...page.matchAll(/\*\*Screen\.\*\* [^*]*?says "([^"]+)"/g)].map(([, words]) => words!.replaceAll(/\s+/g, ' '))
  expect(quoted.length).toBeGreaterThan(2)
  const texts = await read('console/texts/common.ts')
  for (const words of quoted) expect({ words, isThere: texts.includes(words) }).toEqual({ words, isThere: true })
})
