import { decodeBytes, decodeText, printableAscii } from './bytes.ts'
import { commandRules, formats, type CommandRule, type ParameterName } from './parameters.ts'
import { Refusal } from './refusal.ts'

interface Parameter {
  name: string
  /** As it stands on the wire: what a signature covers. */
  raw: string
  value: string
}

export interface Query {
  /** The first token, which has no `=`. */
  command: string
  /** In the order of the URL, a repeated name only once. */
  parameters: Parameter[]
}

/** A command whose parameters are known to fit. */
export interface Command {
  rule: CommandRule
  query: Query
  find(name: ParameterName): string | undefined
  /** For parameters that the command's rule makes mandatory. */
  get(name: ParameterName): string
  /** The same, as it stands on the wire. */
  getRaw(name: ParameterName): string
}

/** Path and query string of a request target, untouched: whoever decodes them first loses what was signed. */
export const splitTarget = (target: string): { path: string; query: string } => {
  // a proxy may send the absolute form
  const local = target.replace(/^https?:\/\/[^/?]*/i, '')
  const mark = local.indexOf('?')
  return mark < 0 ? { path: local, query: '' } : { path: local.slice(0, mark), query: local.slice(mark + 1) }
}

export const parseQuery = (query: string): Query => {
  const [command = '', ...tokens] = query.split('&')
  const parameters = new Map<string, Parameter>()
  for (const token of tokens) {
    const equals = token.indexOf('=')
    const name = equals < 0 ? token : token.slice(0, equals)
    const raw = equals < 0 ? '' : token.slice(equals + 1)
    const key = name.toLowerCase()
    if (!parameters.has(key)) parameters.set(key, { name, raw, value: decodeText(decodeBytes(raw)) })
  }
  return { command, parameters: [...parameters.values()] }
}

/** @throws Refusal for an unknown command, a wrong method, and parameters that are missing or do not fit */
export const readCommand = (method: string, query: Query): Command => {
  const named = commandRules.filter((rule) => rule.command.toLowerCase() === query.command.toLowerCase())
  if (named.length === 0) throw new Refusal('invalid_parameter', `there is no command ${shown(query.command.split('=', 1)[0]!)} here`)
  const rule = named.find(({ methods }) => methods.includes(method))
  if (!rule) throw new Refusal('invalid_parameter', `${named[0]!.command} is not called by ${method}`)

  const parameterOf = (name: ParameterName) => query.parameters.find((parameter) => parameter.name.toLowerCase() === name.toLowerCase())
  const find = (name: ParameterName) => parameterOf(name)?.value
  const demand = (name: ParameterName) => {
    const parameter = parameterOf(name)
    if (!parameter) throw new TypeError(`${rule.command} does not demand ${name}`)
    return parameter
  }
  for (const { name, mandatory } of rule.parameters) {
    const value = find(name)
    if (value === undefined) {
      if (mandatory) throw new Refusal('invalid_parameter', `${name} is missing`)
    } else if (formats[name]?.accepts(value) === false) {
      throw new Refusal('invalid_parameter', `${name} must be ${formats[name]?.expected}`)
    }
  }
  return {
    rule,
    query,
    find,
    get: (name) => demand(name).value,
    getRaw: (name) => demand(name).raw,
  }
}

const shown = (text: string) => `"${printableAscii(text).slice(0, 40)}"`
