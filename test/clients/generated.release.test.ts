import { globSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { verifyWebhook } from '../../clients/typescript/src/index.ts'
import { messageOf } from '../../src/base/errors.ts'
import { readConfig } from '../../src/config/config.ts'
import { buildTimeoutMs } from '../../src/dev/install-program.ts'
import { runProgram } from '../../src/dev/programs.ts'
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

/** Returns a program or a folder with what a language needs, or undefined where that cannot be had. */
const orLeaveOut = async (language: string, find: () => Promise<string>): Promise<string | undefined> => {
  try {
    return await find()
  } catch (thrown) {
    say(`The story in ${language} is left out: ${messageOf(thrown)}`)
    return undefined
  }
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
    const generator = await orLeaveOut('Go', async () => {
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
    const generator = await orLeaveOut('Java', async () => {
      await run('javac', ['-version'], workDir)
      return findOpenApiGenerator(description, { config, say })
    })
    if (!generator) return
    const folder = join(workDir, 'java')
    await cp(join(root, 'test/clients/java'), folder, { recursive: true })
    await cp(description, join(folder, 'openapi.json'))
    const command =
      'openapi-generator-cli generate -i openapi.json -g java -o client --additional-properties=useSingleRequestParameter=true'
    await run('java', ['-jar', join(generator, 'openapi-generator-cli.jar'), ...argumentsOf(command)], folder)
    await writeFile(join(folder, 'sources'), globSync('{Story.java,client/src/main/java/**/*.java}', { cwd: folder }).join('\n'))
    const classPath = ['-cp', `classes:${join(generator, 'lib')}/*`]
    await run('javac', ['-nowarn', '-proc:none', '-d', 'classes', ...classPath, '@sources'], folder)
    expect(await tell('java', (variables) => run('java', [...classPath, 'Story'], folder, variables))).toHaveLength(3)
  },
  buildTimeoutMs,
)
