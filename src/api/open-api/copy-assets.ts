// Run by `npm run build`, see assets.ts.
import { copyFile, mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { assetNames, assetPath } from './assets.ts'

const directory = new URL('../../../swagger-ui/', import.meta.url)
await mkdir(directory, { recursive: true })
for (const name of assetNames) {
  const from = assetPath(name)
  const to = fileURLToPath(new URL(name, directory))
  if (from !== to) await copyFile(from, to)
}
await copyFile('openapi.json', new URL('../../../openapi.json', import.meta.url))
