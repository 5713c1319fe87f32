import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isFullRun } from './full-run.ts'

const run = promisify(execFile)

/** Builds and packs the package in a folder, as it is published. @returns the path of the tarball in the target folder, and the paths in it */
export const pack = async (source: string, target: string): Promise<{ file: string; paths: string[] }> => {
  const { stdout } = await run('npm', ['pack', '--json', '--silent', '--pack-destination', target], {
    cwd: source,
    maxBuffer: 16 * 1024 * 1024,
  })
  // What the build prints comes first.
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [{ filename: string; files: { path: string }[] }]
  return { file: join(target, filename), paths: files.map(({ path }) => path) }
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Installs a packed relay into an empty folder. Without the network, its dependencies are those of the checkout, without the packages of the
 * development.
 * @param options `omitOptional`: as `npm install --omit=optional` does
 * @returns the path of the installed command
 */
export const installPacked = async (file: string, folder: string, { omitOptional = false } = {}): Promise<string> => {
  const modules = join(folder, 'node_modules')
  if (isFullRun) {
    await writeFile(join(folder, 'package.json'), '{}')
    await run('npm', ['install', '--no-audit', '--no-fund', ...(omitOptional ? ['--omit=optional'] : []), file], { cwd: folder })
    return join(modules, '.bin/relay')
  }
  await writeFile(join(folder, 'package.json'), '{ "dependencies": { "document-relay": "*" } }')
  await mkdir(join(modules, 'document-relay'), { recursive: true })
  await run('tar', ['-xzf', file, '--strip-components=1', '-C', join(modules, 'document-relay')])
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>
  }
  for (const [path, { dev, optional, devOptional }] of Object.entries(lock.packages)) {
    const [, name, nested] = path.split('node_modules/')
    if (name === undefined || nested !== undefined || dev || (omitOptional && (optional || devOptional))) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name))
  }
  const { bin } = JSON.parse(await readFile(join(modules, 'document-relay/package.json'), 'utf8')) as { bin: Record<string, string> }
  await mkdir(join(modules, '.bin'))
  for (const [name, path] of Object.entries(bin)) {
    await chmod(join(modules, 'document-relay', path), 0o755)
    await symlink(join('../document-relay', path), join(modules, '.bin', name))
  }
  return join(modules, '.bin/relay')
}
