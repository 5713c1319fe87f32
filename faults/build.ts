import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))

/** A compiled relay. */
export interface Build {
  folder: string
  version: string
}

export const programOf = ({ folder }: Build): string => join(folder, 'dist/src/main.js')

const copyCommit = 'git archive "$2" | tar -xf - -C "$1"'
const copyWorkingTree =
  'git ls-files -z --cached --others --exclude-standard --deduplicate | tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$1"'

/** Compiles the relay of a commit, or of the working tree, in a folder of its own, with the packages of this checkout. */
export const buildRelay = async (folder: string, ref?: string): Promise<Build> => {
  await copySources(folder, ref)
  await npm(folder, 'run', '--silent', 'build')
  return { folder, version: await versionOf(folder) }
}

/** Copies a commit, or the working tree. The packages are those of this checkout. */
const copySources = async (folder: string, ref?: string) => {
  await mkdir(folder)
  const copy = ref === undefined ? copyWorkingTree : copyCommit
  await run('bash', ['-o', 'pipefail', '-c', copy, 'bash', folder, ref ?? ''], { cwd: root })
  for (const modules of ['node_modules', 'clients/typescript/node_modules']) await symlink(join(root, modules), join(folder, modules))
}

const npm = async (folder: string, ...args: string[]) => {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
  return (await run('npm', args, { cwd: folder, env, maxBuffer: 16 * 1024 * 1024 })).stdout
}

const versionOf = async (folder: string) =>
  (JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }).version

export interface Tarball {
  file: string
  name: string
  version: string
  sizeBytes: number
  fileCount: number
}

/** A version after another one, and a migration that it has in addition. */
export interface NextVersion {
  version: string
  migration: { name: string; sql: string }
}

/** Returns the version after this one: the next patch, with a migration that expands the schema. */
export const nextVersion = (version: string): NextVersion => ({
  version: version.replace(/\d+$/, (patch) => String(Number(patch) + 1)),
  migration: {
    name: '9999_expand_documents',
    sql: `
      alter table documents add column next_version_note text not null default 'none';
      create index documents_by_next_version_note on documents (next_version_note);
    `,
  },
})

const addMigration = (folder: string, { migration }: NextVersion) =>
  writeFile(join(folder, `migrations/${migration.name}.sql`), migration.sql)

/** Packs the working tree as it is published, or a next version of it. */
export const packRelay = async (folder: string, next?: NextVersion): Promise<Tarball> => {
  await copySources(folder)
  const current = await versionOf(folder)
  if (next) {
    for (const name of ['package.json', 'src/base/version.ts']) {
      const text = await readFile(join(folder, name), 'utf8')
      await writeFile(join(folder, name), text.replace(current, next.version))
    }
    await addMigration(folder, next)
  }
  const output = await npm(folder, 'pack', '--json', '--silent')
  // What the build prints comes first.
  const [packed] = JSON.parse(output.slice(output.search(/^\[/m))) as [{ filename: string; size: number; entryCount: number }]
  const { filename, size, entryCount } = packed
  return { file: join(folder, filename), name: filename, version: next?.version ?? current, sizeBytes: size, fileCount: entryCount }
}

/** Installs a packed relay with its dependencies, from the cache of npm if it has them. @returns the last line of npm's output */
export const installRelay = async ({ file }: Tarball, folder: string): Promise<string> => {
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{}')
  const output = await npm(folder, 'install', '--prefer-offline', '--no-audit', '--no-fund', file)
  return output.trim().split('\n').at(-1)!
}

/** Copies a build and makes the copy a next version of it. */
export const copyBuild = async (build: Build, folder: string, next: NextVersion): Promise<Build> => {
  await mkdir(folder)
  await cp(join(build.folder, 'dist'), join(folder, 'dist'), { recursive: true })
  await cp(join(build.folder, 'package.json'), join(folder, 'package.json'))
  await cp(join(build.folder, 'openapi.json'), join(folder, 'openapi.json'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, 'dist/src/base/version.js')
  const code = await readFile(file, 'utf8')
  await writeFile(file, code.replace(`'${build.version}'`, `'${next.version}'`))
  await addMigration(join(folder, 'dist'), next)
  return { folder, version: next.version }
}
