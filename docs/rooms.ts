import { readdirSync, readFileSync } from 'node:fs'
import { floors } from '../script/floors.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

const root = new URL('../', import.meta.url)

/** Returns the folders of a folder, without hidden ones and those that git ignores. */
const foldersOf = (path: string): string[] =>
  readdirSync(new URL(path, root), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !['node_modules', 'dist'].includes(entry.name))
    .map(({ name }) => name)

/**
 * Returns what the README of a folder says the folder is: its first paragraph.
 * @throws Error if the folder has no README that begins with its path and a paragraph
 */
const purposeOf = (path: string): string => {
  const [heading, purpose] = readFileSync(new URL(`${path}/README.md`, root), 'utf8').split('\n\n', 2)
  if (heading !== `# \`${path}/\`` || !purpose)
    throw new Error(`${path}/README.md does not begin with the path of its folder and a paragraph`)
  return purpose.replaceAll('\n', ' ')
}

/** Returns the rooms of `src`, those of the lowest floor first. @throws Error if a folder stands on no floor */
export const roomsOfSrc = (): { name: string; floor: number }[] => {
  const rooms = floors.toReversed().flatMap((names, floor) => names.map((name) => ({ name, floor })))
  const folders = rooms.filter(({ name }) => !name.endsWith('.ts'))
  const names = new Set(folders.map(({ name }) => name))
  const lost = foldersOf('src').filter((name) => !names.has(name))
  if (lost.length > 0) throw new Error(`.dependency-cruiser.js names no floor for src/${lost.join(', src/')}`)
  return folders
}

/** Returns docs/architecture.md with the table of the rooms of `src`, the highest floor first. */
export const architecturePage = (): string => {
  const rows = roomsOfSrc()
    .toReversed()
    .map(({ name, floor }) => [`${floor}`, `[\`${name}\`](../src/${name}/README.md)`, purposeOf(`src/${name}`)])
  const page = readFileSync(new URL('architecture.md', import.meta.url), 'utf8')
  return withGenerated(page, 'rooms', `\n${markdownTable(['Floor', 'Room', 'Content'], rows)}`)
}

/** Returns CONTRIBUTING.md with the table of the folders of the repository. */
export const contributingPage = (): string => {
  const paths = foldersOf('.').filter((path) => path !== 'docs')
  const rows = paths.map((path) =>
    path === 'src'
      ? ['[`src/`](docs/architecture.md#the-rooms-of-src)', 'The relay itself. The table of docs/architecture.md has its rooms.']
      : [`[\`${path}/\`](${path}/README.md)`, purposeOf(path)],
  )
  const page = readFileSync(new URL('CONTRIBUTING.md', root), 'utf8')
  return withGenerated(page, 'rooms', `\n${markdownTable(['Folder', 'Contents'], rows)}`)
}
