import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf } from '../../src/base/errors.ts'

/** Options that every benchmark has. */
export const commonOptions = {
  json: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
} as const

/** Option of benchmarks that can run on a cluster, `--temporal postgres`, or on the server of one machine, `--temporal local`. */
export const temporalOption = { temporal: { type: 'string' } } as const

type Options = NonNullable<ParseArgsConfig['options']>

const usageOf = (name: string, options: Options): string => {
  const parts = Object.entries(options).map(([option, { type, multiple, default: byDefault }]) => {
    const value = type === 'boolean' ? '' : ` ${typeof byDefault === 'string' && byDefault !== '' ? byDefault : 'VALUE'}`
    return `[--${option}${value}]${multiple ? '...' : ''}`
  })
  return `script/bench ${[name, ...parts].join(' ')}`
}

/** Reads the options of a benchmark from the command line. `--help` and an option that does not exist end the process. */
export const readOptions = <const Given extends Options>(name: string, options: Given) => readArguments(name, { options }).values

/** Reads options, and what follows them if that is allowed. */
export const readArguments = <const Given extends { options: Options; allowPositionals?: boolean }>(name: string, given: Given) => {
  const usage = `${usageOf(name, given.options)}\n\nThe head of bench/${name}.ts says what is measured, docs/performance.md what the results mean.`
  if (process.argv.includes('--help')) {
    console.log(usage)
    return process.exit(0)
  }
  try {
    return parseArgs(given)
  } catch (thrown) {
    console.error(`${messageOf(thrown)}\n\n${usage}`)
    return process.exit(2)
  }
}
