import { existsSync, globSync, readFileSync } from 'node:fs'
import { roomsOfSrc } from '../../docs/rooms.ts'

const root = new URL('../../', import.meta.url)
const readmes = globSync(['*/README.md', 'src/*/README.md'], { cwd: root }).filter((path) => !/^(node_modules|docs|dist)\//.test(path))

/** Returns the files and folders that a README names and that exist neither below its folder nor below the root. */
const missingIn = (path: string): string[] => {
  const named = [...readFileSync(new URL(path, root), 'utf8').matchAll(/`([\w./-]+\.(?:ts|sql|md|css|json)|[\w./-]+\/)`/g)]
  const places = [new URL('./', new URL(path, root)), root]
  return named.map(([, name]) => name!).filter((name) => !places.some((place) => existsSync(new URL(name, place))))
}

describe('the READMEs of the rooms', () => {
  test('exist for every room of src', () => {
    expect(
      roomsOfSrc()
        .map(({ name }) => `src/${name}/README.md`)
        .toSorted(),
    ).toEqual(readmes.filter((path) => path.startsWith('src/')).toSorted())
  })

  test.each(readmes.filter((path) => path.startsWith('src/')))(
    '%s says what the room owns, where to enter it and what it does not know',
    (path) => {
      const text = readFileSync(new URL(path, root), 'utf8')
      expect(text).toMatch(/^- \*\*Owns\*\*: .+^- \*\*Enter at\*\*: .+^- \*\*Does not know\*\*: /ms)
    },
  )

  test.each(readmes)('%s names files that exist', (path) => {
    expect(missingIn(path)).toEqual([])
  })

  test('name each table of the database in the room that owns it, once', () => {
    const migrations = globSync('migrations/*.sql', { cwd: root }).map((path) => readFileSync(new URL(path, root), 'utf8'))
    const tables = migrations.flatMap((sql) => [...sql.matchAll(/^create table (\w+)/gm)].map(([, table]) => table!))
    const owned = readmes
      .filter((path) => path.startsWith('src/'))
      .flatMap((path) => {
        const [, line] = /^- \*\*Owns\*\*: (.+?)(?=^- )/ms.exec(readFileSync(new URL(path, root), 'utf8')) ?? []
        return [...(line ?? '').matchAll(/`(\w+)`/g)].map(([, word]) => word!).filter((word) => tables.includes(word))
      })
    expect(owned.toSorted()).toEqual(tables.toSorted())
  })
})
