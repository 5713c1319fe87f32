// Run by the Dockerfile after npm install: node script/check-installed.ts. Fails unless every installed package has the version and the hash
// in package-lock.json, so that two builds of a commit install the same packages.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

interface LockedPackage {
  version?: string
  integrity?: string
  link?: boolean
}

export interface Packages {
  packages: Record<string, LockedPackage>
}

/** Compares the installed packages with the locked ones. @returns one line for each difference */
export const findDifferences = (installed: Packages, locked: Packages): string[] =>
  Object.entries(installed.packages)
    .filter(([, { link }]) => link !== true)
    .flatMap(([path, { version, integrity }]) => {
      const expected = locked.packages[path]
      if (expected === undefined) return [`${path} ${version} is not in package-lock.json`]
      if (expected.version !== version) return [`${path} is ${version}, package-lock.json has ${expected.version}`]
      return expected.integrity === integrity ? [] : [`${path} ${version} has another hash than in package-lock.json`]
    })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const read = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as Packages
  // npm writes the first file at the end of every installation.
  const differences = findDifferences(await read('node_modules/.package-lock.json'), await read('package-lock.json'))
  for (const line of differences) console.error(line)
  process.exitCode = differences.length > 0 ? 1 : 0
}
