// Run by `npm run build`: writes the files of the folder `console`, without their types, to `dist`. See files.ts.
import { mkdir, writeFile } from 'node:fs/promises'
import { readConsoleSources } from './files.ts'

const target = new URL('../../../dist/', import.meta.url)
for (const { name, body } of await readConsoleSources()) {
  const file = new URL(name, target)
  await mkdir(new URL('.', file), { recursive: true })
  await writeFile(file, body)
}
