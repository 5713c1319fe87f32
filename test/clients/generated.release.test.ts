import { globSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { verifyWebhook } from '../../clients/typescript/src/index.ts'
import { messageOf, UserError } from '../../src/base/errors.ts'
import { readConfig } from '../../src/config/config.ts'
import { buildTimeoutMs } from '../../src/programs/install-program.ts'
import { findProgram, runProgram } from '../../src/programs/programs.ts'
import { createFolder } from '../support/folder.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { findOapiCodegen, findOpenApiGenerator } from '../support/tools.ts'

// The story of story.system.test.ts in languages without a client of ours, with one that is generated from openapi.json.

const root = fileURLToPath(new URL('../../', import.meta.url))
const description = join(root, 'openapi.json')
const config = readConfig()
const say = (line: string) => void process.stderr.write(`${line}\n`)
const relay = share(await startRelay(share(await startTemporalServer())))
const { path: workDir } = share(await createFolder())

const run = (program: string, args: string[], cwd: string, variables: Record<string, string> = {}) =>
  runProgram(program, args, { env: { ...config.childEnvironment, ...variables }, cwd, timeoutMs: buildTimeoutMs })

/** Returns a program or a folder, or undefined where it cannot be had. `what` is the beginning of the line that says so. */
const orLeaveOut = async (what: string, find: () => Promise<string>): Promise<string | undefined> => {
  try {
    return await find()
  } catch (thrown) {
    say(`${what} left out: ${messageOf(thrown)}`)
    return undefined
  }
}

/** @throws `UserError` if the program is not installed */
const need = async (program: string, remedy: string) => {
  if (!(await findProgram(program, config.childEnvironment.PATH))) throw new UserError(`${program} was not found. Install ${remedy}.`)
}

/** Executes a command of docs/api.md with openapi-generator-cli. */
const generate = async (generator: string, command: string, folder: string) => {
  await cp(description, join(folder, 'openapi.json'))
  await run('java', ['-jar', join(generator, 'openapi-generator-cli.jar'), ...argumentsOf(command)], folder)
}

/** Tells the story. @returns the signed messages with which the relay has delivered its documents */
const tell = async (language: string, story: (variables: Record<string, string>) => Promise<string>) => {
  const secret = 'a secret of the story'
  await using target = await startHttpTarget()
  await relay.run(async ({ api }) => {
    const workspace = `acme/${language}`
    const { keys } = await api.tenant(workspace)
    const output = await story({
      RELAY_URL: api.baseUrl,
      RELAY_WORKSPACE: workspace,
      RELAY_API_KEY: keys.admin,
      TARGET_URL: `${target.origin}/documents`,
      SECRET: secret,
    })
    expect(output).toBe('The story has ended.\n')
  })
  return Promise.all(target.arrivals.map(({ headers, body }) => verifyWebhook({ headers, body, secret })))
}

const commands = await readFile(join(root, 'docs/api.md'), 'utf8')

/** Returns the arguments of a command of docs/api.md. */
const argumentsOf = (command: string): string[] => {
  expect(commands).toContain(`\`${command}\``)
  return command.split(' ').slice(1)
}

test(
  'the story in Go, with the client of oapi-codegen',
  async () => {
    const folder = join(workDir, 'go')
    await cp(join(root, 'test/clients/go'), folder, { recursive: true })
    await cp(description, join(folder, 'openapi.json'))
    const generator = await orLeaveOut('The story in Go is', async () => {
      await need('go', 'Go 1.26 or newer')
      const program = await findOapiCodegen({ config, say })
      await run('go', ['mod', 'download'], folder)
      return program
    })
    if (!generator) return
    const options = argumentsOf('oapi-codegen -generate types,client,skip-prune -package relay openapi.json')
    await mkdir(join(folder, 'relay'))
    await run(generator, ['-o', 'relay/relay.go', ...options], folder)
    await run('go', ['vet', './...'], folder)
    await run('go', ['build', '-o', 'story', '.'], folder)
    expect(await tell('go', (variables) => run(join(folder, 'story'), [], folder, variables))).toHaveLength(3)
  },
  buildTimeoutMs,
)

test(
  'the story in Java, with the client of openapi-generator',
  async () => {
    const generator = await orLeaveOut('The story in Java is', async () => {
      await need('javac', 'a JDK of 17 or newer')
      return findOpenApiGenerator(description, { config, say })
    })
    if (!generator) return
    const folder = join(workDir, 'java')
    await cp(join(root, 'test/clients/java'), folder, { recursive: true })
    const command =
      'openapi-generator-cli generate -i openapi.json -g java -o client --additional-properties=useSingleRequestParameter=true'
    await generate(generator, command, folder)
    await writeFile(join(folder, 'sources'), globSync('{Story.java,client/src/main/java/**/*.java}', { cwd: folder }).join('\n'))
    const classPath = ['-cp', `classes:${join(generator, 'lib')}/*`]
    await run('javac', ['-nowarn', '-proc:none', '-d', 'classes', ...classPath, '@sources'], folder)
    expect(await tell('java', (variables) => run('java', [...classPath, 'Story'], folder, variables))).toHaveLength(3)
  },
  buildTimeoutMs,
)

test(
  'the clients of openapi-generator for Go and Python compile',
  async () => {
    const tools = process.env['TEST_API_TOOLS_DIR']
    const generator = await orLeaveOut('The other clients of openapi-generator are', async () => {
      await need('go', 'Go 1.23 or newer')
      if (!tools) throw new UserError('The tools of the client for Python were not found. Install Python 3.11 or newer with pip.')
      return findOpenApiGenerator(description, { config, say })
    })
    if (!generator || !tools) return
    const folder = join(workDir, 'others')
    await mkdir(folder)
    const command = (language: string, option = '') => `openapi-generator-cli generate -i openapi.json -g ${language} -o client${option}`
    await generate(generator, command('go', ' --additional-properties=enumClassPrefix=true'), folder)
    // The module file of the generator lacks the digests.
    await run('go', ['build', '-mod=mod', './...'], join(folder, 'client'))
    await rm(join(folder, 'client'), { recursive: true })

    await generate(generator, command('python'), folder)
    await rm(join(folder, 'client/openapi_client/api/default_api.py'))
    expect(await run('python3', ['-c', importAll], join(folder, 'client'), { PYTHONPATH: tools })).toContain('DocumentsApi')
  },
  buildTimeoutMs,
)

const importAll = `
import importlib, pkgutil, openapi_client
for module in pkgutil.walk_packages(openapi_client.__path__, "openapi_client."):
    importlib.import_module(module.name)
print(openapi_client.DocumentsApi)
`
