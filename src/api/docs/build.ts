// Run by `npm run build`: writes the documentation to `dist/docs`, as the relay serves it. See load.ts.
import { mkdir, writeFile } from 'node:fs/promises'
import { renderSite } from './site.ts'

const target = new URL('../../../dist/docs/', import.meta.url)
for (const { place, body } of await renderSite()) {
  const file = new URL(place, target)
  await mkdir(new URL('.', file), { recursive: true })
  await writeFile(file, body)
}
