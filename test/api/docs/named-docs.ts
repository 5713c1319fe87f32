import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** A page of the documentation that a text for a reader names. */
interface Named {
  file: string
  /** Path below `/docs`, without a slash: empty for the index. */
  page: string
  anchor: string | undefined
}

const programs = [
  'src/**/*.ts',
  'console/**/*.ts',
  'workflows/**/*.ts',
  'activities/**/*.ts',
  'deploy/**/*.{yml,yaml,json,cfg,sql,sh,service}',
]
const withoutComments = (source: string) => source.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/(?<=^|\s)\/\/.*$/gm, '')

/** Reads the programs without their comments: what is left is shown to people. */
const readPrograms = () =>
  Promise.all(
    globSync(programs, { cwd: root }).map(async (file) => ({ file, text: withoutComments(await readFile(join(root, file), 'utf8')) })),
  )

/** Returns each page of the documentation that texts of the console, the API, the command line and its messages name. */
export const namedDocs = async (): Promise<Named[]> =>
  (await readPrograms()).flatMap(({ file, text }) =>
    // Not where addresses are taken apart, and not those of other hosts.
    file.startsWith('src/api/docs/') || file === 'src/api/open-api/reference.ts'
      ? []
      : [...text.matchAll(/(?<![\w./-])\/docs(?:\/([\w/-]+(?:\.\w+)?))?(?:#([\w-]*))?(?![\w/])/g)].map(([, page = '', anchor]) => ({
          file,
          page,
          anchor,
        })),
  )

/** Returns each text of the relay that sends a reader to a file of the repository, which an installation does not have. */
export const namedSources = async (): Promise<string[]> =>
  (await readPrograms())
    .filter(({ file }) => !file.startsWith('src/api/docs/'))
    .flatMap(({ file, text }) => [...text.matchAll(/(?<![\w/.])(?:docs|deploy)\/[\w/-]+\.md\b/g)].map(([found]) => `${file}: ${found}`))
