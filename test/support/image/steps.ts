// Builds the image without an engine: executes the steps of the Dockerfile in folders, one for each stage, on this machine instead of in
// the base image.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { chmod, copyFile, cp, link, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { isFullRun } from '../full-run.ts'
import type { BuiltImage, ImageConfig } from './image.ts'

const run = promisify(execFile)

interface Instruction {
  name: string
  text: string
}

/** Reads a Dockerfile without comments and line continuations. */
const readInstructions = (dockerfile: string): Instruction[] =>
  dockerfile
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, text] = /^([A-Z]+)\s+(.*)$/.exec(line)!
      return { name: name!, text: text!.trim() }
    })

/** Returns a function that tells whether .dockerignore leaves out a file, by its path in the context. The last pattern that matches decides. */
const readIgnored = (dockerignore: string): ((path: string) => boolean) => {
  const patterns = dockerignore
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const glob = line.replace(/^!/, '').replaceAll(/[.+()]/g, String.raw`\$&`)
      const expression = glob.replaceAll('**/', '(?:.+/)?').replaceAll(/(?<![.)])\*/g, '[^/]*')
      return { ignores: !line.startsWith('!'), matches: new RegExp(`^${expression}(/.*)?$`) }
    })
  return (path) => patterns.findLast(({ matches }) => matches.test(path))?.ignores ?? false
}

interface StageSource {
  name: string
  /** The stage or the image that it begins with. */
  base: string
  /** The stages and images that it copies from. */
  sources: string[]
  instructions: Instruction[]
}

/** Returns the stages that a target is made of, without those of other targets. @param target the last stage by default */
const stagesOf = (instructions: Instruction[], target?: string): StageSource[] => {
  const stages: StageSource[] = []
  for (const instruction of instructions) {
    const [, base, name] = instruction.name === 'FROM' ? /^(\S+)(?: AS (\w+))?$/.exec(instruction.text)! : []
    if (base !== undefined) stages.push({ name: name ?? `stage${stages.length}`, base, sources: [], instructions: [] })
    const from = /^--from=(\S+)/.exec(instruction.text)?.[1]
    if (from !== undefined) stages.at(-1)!.sources.push(from)
    if (base === undefined) stages.at(-1)?.instructions.push(instruction)
  }
  const wanted = new Set([target ?? stages.at(-1)!.name])
  for (const { name, base, sources } of stages.toReversed()) if (wanted.has(name)) for (const each of [base, ...sources]) wanted.add(each)
  return stages.filter(({ name }) => wanted.has(name))
}

interface Stage {
  folder: string
  workDir: string
  variables: Record<string, string>
  config: ImageConfig
}

const emptyConfig = (): ImageConfig => ({
  User: '',
  WorkingDir: '/',
  Entrypoint: [],
  Cmd: [],
  Env: [],
  ExposedPorts: {},
  Healthcheck: { Test: [] },
  Labels: {},
})

// A step of the Dockerfile runs on this machine. It may read one file outside of its folder and write none.
const leavesFolder = /\b(apt|apt-get|apk|dnf|curl|useradd|adduser|groupadd)\b|(^|[\s'"=>])\/(?!etc\/ssl\/certs\/ca-certificates\.crt\b)/

interface BuildOptions {
  /** The stage to build, by default the last one. */
  target?: string
  /** Folder, for each image that the Dockerfile copies from, with its programs. */
  programs?: Record<string, string>
}

/** Executes the steps of a target. Throws for an instruction or a step that it does not know. */
export const buildWithoutEngine = async (context: string, { target, programs = {} }: BuildOptions = {}): Promise<BuiltImage> => {
  const temporary = await mkdtemp(join(tmpdir(), 'relay-image-'))
  // The user of the image must be able to reach its files.
  await chmod(temporary, 0o755)
  const bin = join(temporary, 'bin')
  await mkdir(bin)
  // The user of the image cannot read the home directory of root, which may contain node.
  await linkOrCopy(process.execPath, join(bin, 'node'))
  const searchPath = `${bin}:${process.env['PATH']}`
  const isIgnored = readIgnored(await readFile(join(context, '.dockerignore'), 'utf8'))
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  const beforeStages = new Map<string, string>()
  const open = (): Stage => {
    if (!stage) throw new Error('a step before the first FROM')
    return stage
  }
  const pathIn = ({ folder, workDir }: Stage, path: string) => join(folder, path.startsWith('/') ? path : join(workDir, path))

  const copy = async (text: string): Promise<void> => {
    const words = text.split(/\s+/)
    const origin = words[0]!.startsWith('--from=') ? words.shift()!.slice('--from='.length) : undefined
    const place = words.pop()!
    const to = pathIn(open(), place)
    for (const source of words) {
      const destination = place.endsWith('/') ? join(to, basename(source)) : to
      if (origin === undefined) {
        await copyFromContext(join(context, source), destination, context, isIgnored)
        continue
      }
      await mkdir(dirname(destination), { recursive: true })
      const from = stages.get(origin)
      if (!from) {
        const folder = programs[origin]
        if (folder === undefined) throw new Error(`only an engine knows ${source} of ${origin}`)
        await linkOrCopy(join(folder, basename(source)), destination)
        continue
      }
      const path = pathIn(from, source)
      // Moves it: no later step reads the same file again.
      await rename(path, destination)
    }
  }

  const execute = async (command: string): Promise<void> => {
    const { folder, workDir, variables } = open()
    const cwd = join(folder, workDir)
    await mkdir(cwd, { recursive: true })
    if (/^npm (ci|install) /.test(command) && !isFullRun)
      return installFromCheckout(context, cwd, { production: command.includes('--omit=dev') && command.includes('--omit=optional') })
    if (leavesFolder.test(command)) throw new Error(`only an engine can run this step: ${command}`)
    await run('/bin/sh', ['-ec', command], {
      cwd,
      env: { ...process.env, ...variables, PATH: searchPath },
      maxBuffer: 64 * 1024 * 1024,
    })
  }

  const list = (text: string) => JSON.parse(text) as string[]
  const handlers: Record<string, (text: string) => Promise<void> | void> = {
    ARG: (text) => {
      const [name = '', own] = text.split('=', 2)
      // Without a default: that of the base image, which a stage may name again, or the variable of this machine, if it has one.
      const value = own ?? beforeStages.get(name)
      if (value !== undefined) open().variables[name] = value
    },
    WORKDIR: (text) => {
      Object.assign(open(), { workDir: text }).config.WorkingDir = text
    },
    COPY: copy,
    RUN: execute,
    ENV: (text) => void open().config.Env.push(text),
    LABEL: (text) => {
      for (const [, name, value] of text.matchAll(/(\S+)="([^"]*)"/g))
        open().config.Labels[name!] = value!.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => open().variables[variable]!)
    },
    USER: (text) => void (open().config.User = text),
    EXPOSE: (text) => {
      for (const port of text.split(/\s+/)) open().config.ExposedPorts[`${port}/tcp`] = {}
    },
    HEALTHCHECK: (text) => void (open().config.Healthcheck = { Test: ['CMD', ...list(text.slice(text.indexOf('CMD') + 3))] }),
    ENTRYPOINT: (text) => void (open().config.Entrypoint = list(text)),
    CMD: (text) => void (open().config.Cmd = list(text)),
  }
  const remove = async () => {
    await setWritable(temporary, true)
    await rm(temporary, { recursive: true, force: true })
  }
  try {
    const file = readInstructions(await readFile(join(context, 'Dockerfile'), 'utf8'))
    const first = file.findIndex(({ name }) => name === 'FROM')
    for (const { text } of file.slice(0, first)) beforeStages.set(...(text.split('=', 2) as [string, string]))
    for (const { name: ofStage, base, instructions } of stagesOf(file, target)) {
      // A stage that begins with another one has its files: no third one begins with it or copies from it.
      stage = stages.get(base) ?? { folder: join(temporary, ofStage), workDir: '/', variables: {}, config: emptyConfig() }
      await mkdir(stage.folder, { recursive: true })
      stages.set(ofStage, stage)
      for (const { name, text } of instructions) {
        if (!Object.hasOwn(handlers, name)) throw new Error(`an unknown instruction in the Dockerfile: ${name}`)
        await handlers[name]!(text)
      }
    }
  } catch (thrown) {
    await remove()
    throw thrown
  }

  const { folder: root, config } = open()
  const isRoot = process.getuid?.() === 0
  const [uid, gid] = config.User.split(':').map(Number)
  // Only root can start a program as another user. For anybody else the folders are made read-only.
  if (!isRoot) await setWritable(join(root, 'app'), false)
  await mkdir(join(root, 'tmp'), { recursive: true })
  await chmod(join(root, 'tmp'), 0o1777)
  const env = Object.fromEntries(config.Env.map((entry) => entry.split(/=(.*)/s, 2)))
  // What the steps have put there comes before the programs of this machine.
  const imagePath = ['app/bin', 'usr/local/bin'].map((path) => join(root, path)).join(':')
  return {
    root,
    config,
    command: (program, args, variables) => ({
      // Not the PATH of the program to start, because spawn searches in that of this process.
      file: '/usr/bin/env',
      args: [program, ...args],
      options: {
        cwd: join(root, config.WorkingDir),
        env: { ...env, PATH: `${bin}:${imagePath}:${String(env['PATH'])}`, TMPDIR: join(root, 'tmp'), ...variables },
        ...(isRoot ? { uid: uid!, gid: gid! } : {}),
      },
    }),
    remove,
  }
}

const linkOrCopy = async (from: string, to: string): Promise<void> => {
  try {
    await link(from, to)
  } catch {
    // Another file system, or one without hard links.
    await copyFile(from, to, constants.COPYFILE_FICLONE)
  }
}

/** Copies files of the checkout with the modes that an umask of 077 gives. */
const copyFromContext = async (from: string, to: string, context: string, isIgnored: (path: string) => boolean): Promise<void> => {
  const isCopied = (path: string) => {
    const name = relative(context, path)
    return name === '' || !isIgnored(name)
  }
  if (!isCopied(from)) throw new Error(`.dockerignore leaves out a file that the Dockerfile copies: ${relative(context, from)}`)
  await cp(from, to, { recursive: true, verbatimSymlinks: true, filter: isCopied })
  if (!(await stat(to)).isDirectory()) return chmod(to, 0o600)
  for (const entry of await readdir(to, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && !entry.parentPath.includes('node_modules')) await chmod(join(entry.parentPath, entry.name), 0o600)
}

interface Lockfile {
  packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean; link?: boolean }>
}

/**
 * Does without the network what npm install does: a hard link to each file of the packages of the checkout. The steps after it delete files,
 * and change none.
 */
const installFromCheckout = async (context: string, target: string, { production }: { production: boolean }): Promise<void> => {
  const modules = join(target, 'node_modules')
  if (!production) {
    for (const path of ['node_modules', 'clients/typescript/node_modules']) await symlink(join(context, path), join(target, path))
    return
  }
  const installed = JSON.parse(await readFile(join(context, 'node_modules/.package-lock.json'), 'utf8')) as Lockfile
  const { packages: locked } = JSON.parse(await readFile(join(context, 'package-lock.json'), 'utf8')) as Lockfile
  const isProduction = (path: string) => {
    const { dev, optional, devOptional, link: isLink } = locked[path] ?? {}
    return path.startsWith('node_modules/') && !(dev || optional || devOptional || isLink)
  }
  const kept = Object.keys(installed.packages).filter(isProduction)
  for (const path of kept) await linkPackage(join(context, path), join(target, path))
  const packages = Object.fromEntries(kept.map((path) => [path, installed.packages[path]!]))
  await writeFile(join(modules, '.package-lock.json'), JSON.stringify({ ...installed, packages }))
}

/** Links the files of one package, without the packages in it. */
const linkPackage = async (from: string, to: string): Promise<void> => {
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue
    if (entry.isDirectory()) await linkPackage(join(from, entry.name), join(to, entry.name))
    else await linkOrCopy(join(from, entry.name), join(to, entry.name))
  }
}

/** Makes folders, not files: those of packages are the same as in the checkout. */
const setWritable = async (folder: string, isWritable: boolean): Promise<void> => {
  await chmod(folder, isWritable ? 0o755 : 0o555)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isDirectory()) await chmod(join(entry.parentPath, entry.name), isWritable ? 0o755 : 0o555)
}
