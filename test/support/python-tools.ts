// Programs in Python that tests run. Their packages are installed once into the cache of the embedded stack, in fixed versions.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, UserError } from '../../src/base/errors.ts'
import { buildTimeoutMs, cacheDirOf, installInto } from '../../src/programs/install-program.ts'
import { findProgram, runProgram } from '../../src/programs/programs.ts'
import type { ToolOptions } from './tools.ts'

interface PythonTools {
  /** The folder beside this file with `requirements.txt`, and in the cache. */
  name: string
  /** What they are, for messages. */
  what: string
  /** The variable that names a folder with the packages. */
  variable: string
}

/**
 * Returns a folder of Python packages: the cache, or an installation with pip. Run them with `python3 -m NAME` and the folder as PYTHONPATH.
 */
const fromPip = async ({ name, what, variable }: PythonTools, { config, say }: ToolOptions): Promise<string> => {
  const env = config.childEnvironment
  const requirements = fileURLToPath(new URL(`./${name}/requirements.txt`, import.meta.url))
  const remedy = `Install Python 3.11 or newer with pip, or set ${variable} to a folder with the packages of requirements.txt.`
  const python = await findProgram('python3', env.PATH)
  if (!python) throw new UserError(`The ${what} need Python. ${remedy}`)
  const version = await runProgram(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { env, timeoutMs: buildTimeoutMs })
  const digest = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex')
    .slice(0, 12)
  const target = join(cacheDirOf(config), name, `${digest}-python${version.trim()}`)
  if (existsSync(target)) return target
  say(`Installing the ${what} with pip: less than a minute, once.`)
  const options = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-warn-conflicts', '--retries', '5', '--no-deps']
  const install = () =>
    installInto(target, async (workDir) => {
      const packages = join(workDir, 'packages')
      const onWait = (seconds: number) => say(`Still installing the ${what} (${seconds} s).`)
      await runProgram(python, [...options, '--target', packages, '--requirement', requirements], {
        env,
        timeoutMs: buildTimeoutMs,
        onWait,
      })
      return packages
    })
  try {
    return await install().catch(install)
  } catch (thrown) {
    throw new UserError(`pip could not install the ${what}. ${remedy} Output of pip: ${messageOf(thrown)}`, { cause: thrown })
  }
}

/** Returns the folder of Python packages that check openapi.json from outside. */
export const findApiTools = (options: ToolOptions): Promise<string> =>
  fromPip({ name: 'api-tools', what: 'checks of the API description (schemathesis and others)', variable: 'TEST_API_TOOLS_DIR' }, options)

/** Returns the folder of Python packages with moto, which answers as AWS does. */
export const findMoto = (options: ToolOptions): Promise<string> =>
  fromPip({ name: 'moto', what: 'packages of moto, which answers as AWS does,', variable: 'TEST_MOTO_DIR' }, options)
