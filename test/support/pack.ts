import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Builds and packs the package in a folder, as it is published. @returns the path of the tarball in the target folder, and the paths in it */
export const pack = async (source: string, target: string): Promise<{ file: string; paths: string[] }> => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--silent', '--pack-destination', target], {
    cwd: source,
    maxBuffer: 16 * 1024 * 1024,
  })
  // What the build prints comes first.
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [{ filename: string; files: { path: string }[] }]
  return { file: join(target, filename), paths: files.map(({ path }) => path) }
}
