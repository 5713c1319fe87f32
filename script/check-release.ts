// Run by the release workflow: node script/check-release.ts v1.2.3. Fails unless every place that states the version has that of the tag, and
// the changelog has a section of it.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** Every place that states the version. The pattern of a file matches each of them, and its first group is the version. */
export const places: Record<string, RegExp> = {
  'package.json': /^ {2}"version": "(.+)"/gm,
  'clients/check-source/package.json': /^ {2}"version": "(.+)"/gm,
  'clients/typescript/package.json': /^ {2}"version": "(.+)"/gm,
  'clients/python/pyproject.toml': /^version = "(.+)"/gm,
  'package-lock.json': /"name": "(?:content-server-check|document-relay(?:-client)?)",\n +"version": "(.+)"/g,
  'src/base/version.ts': /^export const version = '(.+)'/gm,
  'openapi.json': /^ {4}"version": "(.+)"/gm,
  'docker-compose.yml': /TEMPORAL_WORKER_BUILD_ID:-(.+)\}$/gm,
  Dockerfile: /^ARG VERSION=(.+)$/gm,
  'deploy/helm/document-relay/Chart.yaml': /^(?:version|appVersion): (.+)$/gm,
  'docs/kubernetes.md': /\/document-relay:(\d\S+)/g,
  'docs/install.md': /(?: document-relay:| VERSION=)(\d\S+)/g,
}

const read = (path: string) => readFile(new URL(`../${path}`, import.meta.url), 'utf8')

/** Finds what differs from the version of a tag. @returns one line for each file, empty if the tag can be released */
export const findMismatches = async (tag: string): Promise<string[]> => {
  const found: string[] = []
  for (const [path, pattern] of Object.entries(places)) {
    const versions = [...new Set([...(await read(path)).matchAll(pattern)].map(([, version]) => version!))]
    if (versions.length !== 1 || tag !== `v${versions[0]}`) found.push(`${path} has version ${versions.join(' and ')}, the tag is ${tag}`)
  }
  if (!(await read('CHANGELOG.md')).includes(`\n## [${tag.slice(1)}] - `)) found.push(`CHANGELOG.md has no section [${tag.slice(1)}]`)
  return found
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mismatches = await findMismatches(process.argv[2] ?? '')
  for (const line of mismatches) console.error(line)
  process.exitCode = mismatches.length > 0 ? 1 : 0
}
