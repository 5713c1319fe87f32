// Run in CI: node script/check-api.ts. Compares openapi.json with that of the last release, and fails if a client of it would break
// (docs/api-stability.md). OASDIFF_BIN names the program, which is `oasdiff` on PATH by default.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const maxBytes = 64 * 1_024 * 1_024
const timeout = 60_000

/** Returns the tag of the last release before this commit, or undefined if there is none. */
const lastRelease = (): string | undefined => {
  const tags = execFileSync('git', ['tag', '--list', 'v*', '--merged', 'HEAD', '--no-contains', 'HEAD', '--sort=-version:refname'])
  return tags
    .toString()
    .split('\n')
    .find((tag) => /^v\d+\.\d+\.\d+$/.test(tag))
}

/** Compares two descriptions of an API. @returns what breaks a client of the earlier one, empty if nothing does */
export const findBreaks = (program: string, earlier: string, later: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'check-api-'))
  try {
    const [base, revision] = [join(folder, 'earlier.json'), join(folder, 'later.json')]
    writeFileSync(base, earlier)
    writeFileSync(revision, later)
    const answer = execFileSync(program, ['breaking', base, revision, '--format', 'json'], { maxBuffer: maxBytes, timeout }).toString()
    const breaks = (answer.trim().startsWith('[') ? JSON.parse(answer) : []) as { operation?: string; path?: string; text: string }[]
    return breaks.map(({ operation = '', path = '', text }) => `${operation} ${path}: ${text}`).join('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tag = lastRelease()
  if (tag === undefined) {
    console.log('Nothing has been released: there is no description to compare with.')
  } else {
    const [earlier, later] = [`${tag}:openapi.json`, 'HEAD:openapi.json'].map((name) =>
      execFileSync('git', ['show', name], { maxBuffer: maxBytes }).toString(),
    )
    const breaks = findBreaks(process.env['OASDIFF_BIN'] ?? 'oasdiff', earlier!, later!)
    console.log(breaks === '' ? `No client of ${tag} breaks.` : breaks)
    if (breaks !== '') process.exitCode = 1
  }
}
