import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const extension = extname(import.meta.url)

/**
 * How data and errors of workers are written. Workers and the bundle of the workflows must have the same: a worker takes that of the workflows
 * from their bundle.
 */
export const dataConverter = {
  failureConverterPath: fileURLToPath(new URL(`../../workflows/failure-converter${extension}`, import.meta.url)),
}
