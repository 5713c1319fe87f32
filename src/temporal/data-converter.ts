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

/**
 * Returns what a bundle of these workflows is made of. Its modules are evaluated once per worker, instead of once per workflow, which takes a
 * quarter of the time of a workflow: they keep nothing of a workflow, and the SDK freezes what they export.
 */
export const bundleOf = (workflowsPath: string) => ({
  ...dataConverter,
  workflowsPath,
  preloadModules: [workflowsPath, dataConverter.failureConverterPath],
})
