import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError } from 'commander'
import { parse } from 'yaml'
import { describeCheck } from '../../clients/check-source/src/check-options.ts'
import { createCli } from '../../src/cli/cli.ts'
import { environment } from '../../src/config/config.ts'
import { blocksOf, commandsOf, readPages, splitCommands, type PageCommand } from './commands.ts'
import { walkedPages } from './walk.ts'

// Compares what the pages tell readers to type with the programs: a verb, an option, a script or a variable that does not exist fails.

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

const pages = await readPages()
const commands = pages.flatMap(commandsOf)

/** Variables that the pages name and other programs than the relay read, and the file that reads them. */
const namedElsewhere: Record<string, string> = {
  RELAY_API_KEY: 'clients/typescript/example.ts',
  RELAY_BIND: 'docker-compose.yml',
  RELAY_DATABASE_PASSWORD: 'docker-compose.yml',
  RELAY_URL: 'clients/typescript/example.ts',
  RELAY_WORKSPACE: 'clients/typescript/example.ts',
  TEMPORAL_DATABASE_PASSWORD: 'docker-compose.yml',
  TEST_API_TOOLS_DIR: 'test/support/set-up.ts',
  TEST_SPECTRAL_BIN: 'test/support/set-up.ts',
  TEST_BASE_IMAGE: 'test/support/image/engines.ts',
  TEST_BROWSER_BIN: 'test/support/set-up.ts',
  TEST_DATABASE_URL: 'test/support/set-up.ts',
  TEST_FULL: 'test/support/full-run.ts',
  TEST_HELM_BIN: 'test/support/set-up.ts',
  TEST_KUBECONFORM_BIN: 'test/support/set-up.ts',
  TEST_KUBERNETES_API_DIR: 'test/support/set-up.ts',
  TEST_MINIO_BIN: 'test/support/tools.ts',
  TEST_MOTO_DIR: 'test/support/set-up.ts',
  TEST_SCREENSHOTS: 'test/console/browser.ts',
  TEST_SEED: 'test/fuzz/fuzz.release.test.ts',
  TEST_TEMPORAL_SERVER_DIR: 'test/support/tools.ts',
}

const temporalVariables = textOf('node_modules/@temporalio/envconfig/lib/envconfig-toml.js')
const prefixes = new Set([...Object.keys(environment.shape), ...Object.keys(namedElsewhere)].map((name) => name.split('_')[0]!))
// Not `.relay-HASH.part`, a placeholder in the name of a file, and not RFC_PING, a function of the source system.
const variablePattern = new RegExp(`(?<![.\\w])(?!RFC_PING\\b)(?:${[...prefixes].join('|')})_[A-Z0-9_]*[A-Z0-9_*]`, 'g')

/** Returns what is wrong with the name of a variable, if it is one of the relay. `NAME_*` stands for several. */
const problemOfVariable = (name: string): string | undefined => {
  const known = [...Object.keys(environment.shape), ...Object.keys(namedElsewhere)]
  if (name.startsWith('RELAY_CREDENTIAL_')) return undefined
  const isKnown = name.endsWith('*')
    ? known.some((each) => each.startsWith(name.slice(0, -1))) || temporalVariables.includes(name.slice(0, -1))
    : known.includes(name) || (name.startsWith('TEMPORAL_') && new RegExp(`\\b${name}\\b`).test(temporalVariables))
  // The OpenTelemetry SDK reads variables of its own.
  return isKnown || name.startsWith('OTEL_') ? undefined : `no program reads ${name}`
}

/** Gives a command line actions that do nothing. @param isComplete if false, arguments and mandatory options may be missing */
const disarmed = (program: Command, isComplete: boolean): Command => {
  const disarm = (command: Command): void => {
    command.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} })
    if (command.commands.length === 0) command.action(() => {})
    if (!isComplete) {
      for (const option of command.options) option.mandatory = false
      for (const argument of command.registeredArguments) argument.required = false
    }
    command.commands.forEach(disarm)
  }
  disarm(program)
  return program
}

const problemOfRelay = (words: string[], isComplete: boolean, program = createCli({})): string | undefined => {
  if (words[0] === '...') return undefined
  try {
    disarmed(program, isComplete).parse(words, { from: 'user' })
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown
    const accepted = ['commander.version', 'commander.helpDisplayed']
    // A group of verbs without a verb, and an option without its value.
    if (!isComplete) accepted.push('commander.help', 'commander.optionMissingArgument')
    return accepted.includes(thrown.code) ? undefined : thrown.message
  }
}

const optionsIn = (words: string[]) => words.filter((word) => /^--\w/.test(word)).map((word) => word.split('=')[0]!)

/** Returns the problem of options that a program of this repository reads with `parseArgs`. */
const problemOfOptions = (words: string[], paths: string[]): string | undefined => {
  const source = paths.map(textOf).join('\n')
  const unknown = optionsIn(words).filter(
    (option) => !new RegExp(`[ {]'?${option.slice(2)}'?: (\\{ type|flag)|^ +${option}[ )=]`, 'm').test(source),
  )
  return unknown.length > 0 ? `${paths[0]} has no ${unknown.join(', ')}` : undefined
}

const reports = 'bench/support/options.ts'

/** Returns the files that define the options of a benchmark. */
const benchmarkFiles = (name: string): string[] => {
  const imports = [...textOf(`bench/${name}.ts`).matchAll(/ from '\.\/(support\/[\w-]+\.ts)'/g)].map(([, file]) => `bench/${file}`)
  return [`bench/${name}.ts`, ...imports]
}

const problemOfScript = (name: string, words: string[], isComplete: boolean): string | undefined => {
  const path = `script/${name}`
  const missing = (file: string) => (existsSync(join(root, file)) ? undefined : `there is no ${file}`)
  if (missing(path)) return missing(path)
  if (name === 'test') return (words[0]?.startsWith('test/') && missing(words[0])) || problemOfOptions(words, [path])
  if (name === 'bench') {
    // Without a name, or with a placeholder, these are the options of every benchmark.
    const [benchmark = 'NAME'] = words
    return benchmark === 'NAME'
      ? problemOfOptions(words, [reports])
      : (missing(`bench/${benchmark}.ts`) ?? problemOfOptions(words, benchmarkFiles(benchmark)))
  }
  const [, main, verb] = /exec node .*"\$root\/([\w/-]+\.ts)"(?: (\w+))?/.exec(textOf(path))!
  return main === 'src/main.ts'
    ? problemOfRelay(verb === undefined ? words : [verb, ...words], isComplete)
    : problemOfOptions(words, [main!])
}

const npmScripts = (JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }).scripts

const problemOfNpmScript = (words: string[]): string | undefined => {
  const [name = ''] = words
  if (!(name in npmScripts)) return `package.json has no script ${name}`
  const program = /^node (\S+\.ts)$/.exec(npmScripts[name]!)?.[1]
  return program === undefined ? undefined : problemOfOptions(words, [program])
}

/** Checks the services that `docker compose exec SERVICE`, `run SERVICE` and `up SERVICE...` name, the file, the profile, and a verb of relay. */
const problemOfCompose = ([verb, ...words]: string[], file = 'docker-compose.yml'): string | undefined => {
  if (verb === '--file') return existsSync(join(root, words[0]!)) ? problemOfCompose(words.slice(1), words[0]) : `there is no ${words[0]}`
  const { services } = parse(textOf(file)) as { services: Record<string, { profiles?: string[] }> }
  if (verb === '--profile') {
    const hasProfile = Object.values(services).some(({ profiles }) => profiles?.includes(words[0]!))
    return hasProfile ? problemOfCompose(words.slice(1), file) : `${file} has no profile ${words[0]}`
  }
  const names = words.filter((word) => !word.startsWith('--'))
  const named = verb === 'up' ? names : ['exec', 'run'].includes(verb!) ? names.slice(0, 1) : []
  const unknown = named.filter((service) => !(service in services))
  if (unknown.length > 0) return `${file} has no service ${unknown.join(', ')}`
  // A service may have the name of the program.
  const program = words.indexOf('relay', words.indexOf(names[0]!) + 1)
  return verb === 'exec' && names[1] === 'relay' ? problemOfRelay(words.slice(program + 1), true) : undefined
}

/** Returns what is wrong with a command, if it is one of this repository. */
const problemOf = ({ words, isComplete }: Pick<PageCommand, 'words' | 'isComplete'>): string | undefined => {
  const [program, ...rest] = words
  // A verb in capitals is a placeholder.
  if (/^(\S*\/)?(document-)?relay$/.test(program!)) return problemOfRelay(rest.at(-1) === 'VERB' ? ['--help'] : rest, isComplete)
  if (program === 'content-server-check') return problemOfRelay(rest, isComplete, describeCheck(new Command(program)))
  if (/^script\/[\w-]+$/.test(program!)) return problemOfScript(program!.slice(7), rest, isComplete)
  const script = rest.filter((word) => word !== '--silent')
  if (program === 'npm' && script[0] === 'run') return problemOfNpmScript(script.slice(1))
  if (program === 'docker' && rest[0] === 'compose') return problemOfCompose(rest.slice(1))
  return undefined
}

const isChecked = ([program, verb]: string[]) =>
  /^(\S*\/)?(document-)?relay$|^content-server-check$|^script\/[\w-]+$/.test(program!) || (program === 'npm' && verb === 'run')

const textsOf = (list: PageCommand[]) => list.map(({ path, words }) => `${path}: ${words.join(' ')}`)

test('every verb and option of relay, every script and every npm script that a page names exists', () => {
  expect(commands.filter(({ words }) => isChecked(words)).length).toBeGreaterThan(200)
  const wrong = commands.flatMap((command) => {
    const problem = problemOf(command)
    return problem === undefined ? [] : [`${textsOf([command])[0]}: ${problem}`]
  })
  expect(wrong).toEqual([])
})

test('every variable of the relay that a page names is read by a program', () => {
  const wrong = pages.flatMap(({ path, text }) =>
    [...new Set(text.match(variablePattern))].flatMap((name) => problemOfVariable(name) ?? []).map((problem) => `${path}: ${problem}`),
  )
  expect(wrong).toEqual([])
  for (const [name, path] of Object.entries(namedElsewhere))
    expect({ path, reads: textOf(path).includes(name) && name }).toEqual({ path, reads: name })
})

test.each([
  ['relay frobnicate', 'unknown command'],
  ['relay workspace frobnicate acme/first', 'unknown command'],
  ['relay reconcile --wet-run', "unknown option '--wet-run'"],
  ['relay key create acme/first --level emperor', 'Allowed choices are'],
  ['relay key create acme/first', "required option '--level <level>'"],
  ['key=$(script/relay key make acme/first)', 'unknown command'],
  ['"$HOME/node_modules/.bin/relay" migrate --sideways', 'unknown option'],
  ['until npx relay doctr; do sleep 1; done', 'unknown command'],
  ['docker run --rm --env-file relay.env document-relay:0.1.0 migrat', 'unknown command'],
  ['docker exec CONTAINER relay doctor --verbose', 'unknown option'],
  ['docker compose run --rm migrations', 'no service migrations'],
  ['docker compose --profile metrics up', 'no profile metrics'],
  ['docker compose --file deploy/compose/two-machines.yml up', 'there is no deploy/compose/two-machines.yml'],
  ['docker compose --file deploy/compose/one-machine.yml exec api relay doctor', 'one-machine.yml has no service api'],
  ['docker compose --file deploy/compose/one-machine.yml exec relay relay workspace make', 'unknown command'],
  ['docker compose exec api relay key make acme/first', 'unknown command'],
  ['kubectl exec deploy/document-relay-api -- relay workspaces', 'unknown command'],
  ['content-server-check --repository Z1', "required option '--url <url>' not specified"],
  ['script/frobnicate', 'there is no script/frobnicate'],
  ['script/demo --twice', 'unknown option'],
  ['script/test --slowly', 'script/test has no --slowly'],
  ['script/test test/none', 'there is no test/none'],
  ['script/faults --shorter', 'faults/main.ts has no --shorter'],
  ['script/bench frobnicate --json', 'there is no bench/frobnicate.ts'],
  ['script/bench relay --frobnicate', 'bench/relay.ts has no --frobnicate'],
  ['npm run frobnicate', 'package.json has no script frobnicate'],
  ['npm run --silent audit -- --package', 'script/audit.ts has no --package'],
])('the check refuses %s', (script, problem) => {
  const words = splitCommands(script)[0]
  expect(problemOf({ words: words!, isComplete: true })).toContain(problem)
})

test('inline code may leave out arguments and mandatory options, but may not name what does not exist', () => {
  const problemOfInline = (code: string) => problemOf({ words: splitCommands(code)[0]!, isComplete: false })
  for (const code of [
    'relay',
    'relay key',
    'relay key create',
    'relay key create --member',
    'relay show --workspace',
    'relay workspace delete',
  ])
    expect({ code, problem: problemOfInline(code) }).toEqual({ code, problem: undefined })
  for (const code of ['relay keyz', 'relay key make', 'relay key create --colour', 'relay show --everything'])
    expect({ code, problem: problemOfInline(code) }).toEqual({ code, problem: expect.stringContaining('unknown') })
})

test.each(['RELAY_PROT', 'DELIVERY_MAX', 'TEMPORAL_TLS_CERT', 'CONTENT_X_*', 'DATABASE_URI'])(
  'the check refuses the variable %s',
  (name) => {
    expect(name.match(variablePattern)).toEqual([name])
    expect(problemOfVariable(name)).toBe(`no program reads ${name}`)
  },
)

test('the blocks of commands in the pages that no test runs have the language sh', () => {
  const withBash = pages.filter(({ text }) => blocksOf(text).some(({ language }) => language === 'bash')).map(({ path }) => path)
  expect(withBash.toSorted()).toEqual(Object.values(walkedPages).flat().toSorted())
})

test('CONTRIBUTING.md says why no test runs the commands of a block of sh as they stand', () => {
  const [, table] = /^\| Command of `sh` \|[^\n]*\n\|[-|]+\|\n(.*?)^$/ms.exec(textOf('CONTRIBUTING.md'))!
  const excepted = table!.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
  const blocks = pages.flatMap(({ path, text }) =>
    blocksOf(text)
      .flatMap(({ language, content }) => (language === 'sh' ? splitCommands(content) : []))
      // The verb of an image, without `docker run`.
      .filter(([program]) => program !== 'relay')
      .map((words) => ({ path, words, isComplete: true })),
  )
  const isException = (words: string[], name: string) => `${words.join(' ')} `.startsWith(`${name} `)
  expect(textsOf(blocks.filter(({ words }) => !excepted.some((name) => isException(words, name))))).toEqual([])
  expect(excepted.filter((name) => !blocks.some(({ words }) => isException(words, name)))).toEqual([])
})
