import { execFile, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildWithEngine, findEngine } from './engines.ts'
import { buildWithoutEngine } from './steps.ts'

const run = promisify(execFile)

/** The checkout, which is the context of the build. */
export const context = fileURLToPath(new URL('../../../', import.meta.url))

/** The settings of an image that this project sets, with the names that docker gives them. */
export interface ImageConfig {
  User: string
  WorkingDir: string
  Entrypoint: string[]
  Cmd: string[]
  Env: string[]
  ExposedPorts: Record<string, object>
  Healthcheck: { Test: string[] }
  Labels: Record<string, string>
}

/** A program that runs in an image. */
interface ImageCommand {
  file: string
  args: string[]
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid'>
}

export interface BuiltImage {
  /** Folder with the files of the image. */
  root: string
  config: ImageConfig
  /** Returns how to run a program as the user of the image, with a root file system that it cannot write, and a temporary folder. */
  command(program: string, args: string[], variables: Record<string, string>): ImageCommand
  remove(): Promise<void>
}

/** The engine that builds and runs images here. Undefined if none does, or if none has the base image. */
export const engine = await findEngine()

/** Builds the image of the Dockerfile with the engine, or executes its steps in a folder. */
export const buildImage = (): Promise<BuiltImage> => (engine ? buildWithEngine(engine, context) : buildWithoutEngine(context))

/**
 * Builds the image with the Temporal server, by the steps of the Dockerfile in a folder.
 * @param programs folder with temporal-server and temporal-sql-tool
 * @param ui folder with ui-server
 */
export const buildImageOfAll = async (programs: string, ui: string): Promise<BuiltImage> => {
  const dockerfile = await readFile(join(context, 'Dockerfile'), 'utf8')
  const images = [...dockerfile.matchAll(/^COPY --from=(temporalio\/\S+) /gm)].map(([, image]) => image!)
  const folders = images.map((image) => [image, image.startsWith('temporalio/ui:') ? ui : programs] as const)
  return buildWithoutEngine(context, { target: 'all', programs: Object.fromEntries(folders) })
}

/** Runs a program in the image until it ends. @returns its exit status and all of its output */
export const runInImage = async (
  image: BuiltImage,
  [program, ...args]: string[],
  variables: Record<string, string> = {},
): Promise<{ status: number; output: string }> => {
  const { file, args: all, options } = image.command(program!, args, variables)
  try {
    const { stdout, stderr } = await run(file, all, { ...options, maxBuffer: 16 * 1024 * 1024 })
    return { status: 0, output: stdout + stderr }
  } catch (thrown) {
    const { code, stdout, stderr } = thrown as { code?: ChildProcess['exitCode'] | string; stdout?: string; stderr?: string }
    if (typeof code !== 'number') throw thrown
    return { status: code, output: `${stdout}${stderr}` }
  }
}
