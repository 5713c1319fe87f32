import { isAbsolute, relative, sep } from 'node:path'

/**
 * Returns `true` if `path` is one of the roots or lies below one. Compares the paths as text and follows no symbolic
 * links.
 */
export const isBelowRoot = (path: string, roots: readonly string[]): boolean =>
  roots.some((root) => {
    const way = relative(root, path)
    return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
  })
