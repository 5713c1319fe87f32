// Run by the release workflow: node script/check-release.ts v1.2.3. Fails unless the tag is the version of both packages and the changelog
// has a section of this version.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const read = (path: string) => readFile(new URL(`../${path}`, import.meta.url), 'utf8')

/** Finds what differs from the version of a tag. @returns one line each, empty if the tag can be released */
export const findMismatches = async (tag: string): Promise<string[]> => {
  const found: string[] = []
  for (const path of ['package.json', 'clients/typescript/package.json']) {
    const { name, version } = JSON.parse(await read(path)) as { name: string; version: string }
    if (tag !== `v${version}`) found.push(`${name} has version ${version}, the tag is ${tag}`)
  }
  if (!(await read('CHANGELOG.md')).includes(`\n## [${tag.slice(1)}] - `)) found.push(`CHANGELOG.md has no section [${tag.slice(1)}]`)
  return found
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mismatches = await findMismatches(process.argv[2] ?? '')
  for (const line of mismatches) console.error(line)
  process.exitCode = mismatches.length > 0 ? 1 : 0
}
