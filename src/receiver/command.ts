import { decodeBytes, decodeText, printableAscii } from '../content-server/encoding.ts'
import { commandRules, formats, isCompId, type CommandRule, type ParameterName } from '../content-server/parameters.ts'
import { Refusal } from './refusal.ts'

export interface Parameter {
  name: string
  /** Value as it stands in the URL, which a signature covers. */
  raw: string
  value: string
}

export interface Query {
  /** First token, which has no `=`. */
  command: string
  /** The parameters in the order of the URL; of a repeated name, the first value. */
  parameters: Parameter[]
}

/** A command with valid parameters. */
export interface Command {
  rule: CommandRule
  query: Query
  find(name: ParameterName): string | undefined
  /** Returns a mandatory parameter. */
  get(name: ParameterName): string
  /** Returns a mandatory parameter as it stands in the URL. */
  getRaw(name: ParameterName): string
}

/** Splits a request target into path and query string, without decoding: signatures cover the encoded values. */
export const splitTarget = (target: string): { path: string; query: string } => {
  // A proxy may send the absolute form.
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

/** @throws `Refusal` if the command is unknown, the method is wrong, or a parameter is missing or invalid */
export const readCommand = (method: string, query: Query): Command => {
  const named = commandRules.filter((rule) => rule.command.toLowerCase() === query.command.toLowerCase())
  if (named.length === 0) throw new Refusal('invalid_parameter', `unknown command ${quote(query.command.split('=', 1)[0]!)}`)
  const rule = named.find(({ methods }) => methods.includes(method))
  if (!rule) throw new Refusal('invalid_parameter', `${named[0]!.command} does not accept the method ${method}`)

  const parameterOf = (name: ParameterName) => query.parameters.find((parameter) => parameter.name.toLowerCase() === name.toLowerCase())
  const find = (name: ParameterName) => parameterOf(name)?.value
  const required = (name: ParameterName) => {
    const parameter = parameterOf(name)
    if (!parameter) throw new TypeError(`${name} is not mandatory in ${rule.command}`)
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
    get: (name) => required(name).value,
    getRaw: (name) => required(name).raw,
  }
}

/** Returns a command whose component is named in a code page. @throws `Refusal` if the name is invalid */
export const inCodePage = (command: Command, codePage: string): Command => {
  const raw = command.query.parameters.find(({ name }) => name.toLowerCase() === 'compid')?.raw
  if (raw === undefined) return command
  const compId = decodeText(decodeBytes(raw), codePage)
  if (!isCompId(compId)) throw new Refusal('invalid_parameter', `compId must be ${formats.compId.expected}`)
  const valueOf = <Value>(name: ParameterName, other: (name: ParameterName) => Value) => (name === 'compId' ? compId : other(name))
  return { ...command, find: (name) => valueOf(name, command.find), get: (name) => valueOf(name, command.get) }
}

const quote = (text: string) => `"${printableAscii(text).slice(0, 40)}"`
