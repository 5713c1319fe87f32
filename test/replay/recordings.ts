import { execFileSync } from 'node:child_process'
import { globSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const folder = 'test/replay'

/** Returns the paths of the recordings, relative to this folder: those of the releases, then those of `unreleased`. */
export const recordings = (): string[] => globSync('*/*.json', { cwd: import.meta.dirname }).toSorted()

/**
 * Returns what differs in the folders of the releases from the commit that added each of them. A folder that is gone as a whole is no
 * difference. In a shallow clone, the commit is the oldest one that the clone has.
 */
export const changesOfReleases = (root: string): string[] => {
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '')
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'unreleased')
    .flatMap(({ name }) => {
      const path = `${folder}/${name}`
      const added = git('rev-list', 'HEAD', '--', path).at(-1)
      // A release that is being made.
      if (added === undefined) return []
      const changed = git('diff', '--no-renames', '--name-only', added, '--', path)
      return [...changed, ...git('ls-files', '--others', '--', path)]
    })
}
