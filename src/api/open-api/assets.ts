import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The files of Swagger UI that the reference serves. */
export const assetNames = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const

// `npm run build` copies the files to `dist/swagger-ui`. A production installation therefore does not need the package swagger-ui-dist,
// which depends on a package that reports installations (@scarf/scarf).
const copies = new URL('../../../swagger-ui/', import.meta.url)
const require = createRequire(import.meta.url)

/** Returns the path of a file: the copy in a compiled relay, otherwise that in the package. */
export const assetPath = (name: (typeof assetNames)[number]): string => {
  const copy = fileURLToPath(new URL(name, copies))
  return existsSync(copy) ? copy : require.resolve(`swagger-ui-dist/${name}`)
}
