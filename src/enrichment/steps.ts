import type { z } from 'zod'
import type { stepOutcome } from '../archive/document-fields.ts'
import { AppError } from '../base/errors.ts'
import { DeliveryError } from '../connectors/connector.ts'
import type { CircuitSignal } from '../domain/circuit.ts'
import { isSettled, type StepStatus } from '../domain/enrichment-states.ts'
import { fieldsIn, fillFields, isLinkField, valueIn } from '../domain/field-template.ts'
import { applicability } from '../domain/step-condition.ts'
import { NotBegunError } from '../http/task-limits.ts'
import type { FoundFields } from './answer.ts'
import type { HttpCall } from './http-call.ts'
import { callOf, conditionOf, textsOf, type CallStep, type ReadField, type StepSettings } from './settings.ts'

/** How a step has ended at the last try. */
export type StepOutcome = z.output<typeof stepOutcome>

/** A call with the values of a document. */
export type FilledCall =
  | { kind: 'rfc'; function: string; imports: unknown; tables: unknown }
  | ({ kind: 'http' } & HttpCall)
  | { kind: 'e_invoice' }

/** Makes a call and reads fields in its answer. `shown` returns the beginning of the answer, without secrets. @throws `AppError`, `DeliveryError`, `NotBegunError` or the reason of a signal if there is no answer */
export type MakeCall = (
  call: FilledCall,
  fields: ReadField[],
  step: string,
) => Promise<FoundFields & { shown: (maxCharacters: number) => string }>

const fillDeeply = (value: unknown, values: Record<string, string>): unknown => {
  if (typeof value === 'string') return fillFields(value, values)
  if (Array.isArray(value)) return value.map((each) => fillDeeply(each, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillDeeply(inner, values)]))
}

const percentEncoded = (text: string) =>
  encodeURIComponent(text).replaceAll(/['()*!]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)

/** Encodes a value for a URL. In a text of OData, which stands between single quotes, a quote is doubled. */
const inUrl = (value: string, before: string): string => {
  const isQuoted = before.split("'").length % 2 === 0
  return percentEncoded((isQuoted ? value.replaceAll("'", "''") : value).toWellFormed())
}

/** Returns a call with the values of a document, escaped for where they stand. XML is escaped when the call is sent. */
const fillCall = (call: CallStep, baseUrl: string, values: Record<string, string>): FilledCall => {
  if (call.kind === 'rfc') {
    return { kind: 'rfc', function: call.function, imports: fillDeeply(call.imports, values), tables: fillDeeply(call.tables, values) }
  }
  if (call.kind === 'e_invoice') return { kind: 'e_invoice' }
  const { kind, method, path, body } = call
  const url = baseUrl.replace(/\/$/, '') + fillFields(path, values, inUrl)
  return { kind, method, url, body: body === undefined ? undefined : JSON.stringify(fillDeeply(body, values)) }
}

/** Returns how a step ends that has an answer, and what says why fields have no value: each of them, the required ones first. */
const endOf = ({ problems, reason }: FoundFields): { status: 'done' | 'incomplete'; error: string | null } => {
  const required = problems.filter(({ optional }) => !optional)
  const missing = [...required, ...problems.filter(({ optional }) => optional)]
  const text = reason ?? missing.map(({ name, problem }) => `${name} ${problem}`).join('; ')
  return { status: required.length === 0 ? 'done' : 'incomplete', error: text === '' ? null : text }
}

const systemErrors = new Set(['rfc_failed', 'rfc_timeout'])
// Of the answers 400 to 499, these say nothing about the call.
const busyStatuses = new Set([408, 425, 429])

/** Returns what a failed call says about the system: it has refused this call, it fails, or it was not asked. */
const signalOf = (thrown: AppError | DeliveryError): CircuitSignal => {
  if (thrown instanceof AppError) {
    if (thrown.code === 'abap_exception') return 'answered'
    return systemErrors.has(thrown.code) ? 'failed' : 'unknown'
  }
  const status = thrown.answer?.status
  return typeof status === 'number' && status < 500 && !busyStatuses.has(status) ? 'answered' : 'failed'
}

/**
 * Runs the steps of an enrichment in their order.
 * @param document the values of the placeholders, which the fields of each step are added to
 * @param earlier returns the outcome of a step that needs no call
 * @returns `isBusy`: true if a step was not begun, and no other has a problem of its own. `signal`: what the calls say about the system
 */
export const runSteps = async (
  steps: readonly StepSettings[],
  baseUrl: string,
  document: Readonly<Record<string, string>>,
  makeCall: MakeCall,
  earlier: (call: CallStep, values: Readonly<Record<string, string>>) => StepOutcome | undefined,
): Promise<{ found: Record<string, string>; outcomes: StepOutcome[]; isBusy: boolean; signal: CircuitSignal }> => {
  const found: Record<string, string> = {}
  const outcomes: StepOutcome[] = []
  /** The names of fields, by the outcomes of the steps that give them. */
  const given = new Map<string, StepStatus>()
  let isNotBegun = false
  let signal: CircuitSignal = 'unknown'
  const runStep = async (step: StepSettings, call: CallStep): Promise<Omit<StepOutcome, 'name' | 'at'>> => {
    const values = { ...document, ...found }
    const condition = conditionOf(step)
    const isOpen = (name: string) => !isSettled(given.get(name) ?? 'waiting')
    const applies = condition && applicability(condition, { values, isOpen })
    if (applies && applies.decision !== 'apply') {
      return { status: applies.decision === 'skip' ? 'skipped' : 'waiting', error: applies.reason }
    }
    const missing = textsOf(call)
      .flatMap(({ text }) => fieldsIn(text))
      .filter((name) => valueIn(values, name) === undefined)
    const lacking = missing.find((name) => !isOpen(name))
    if (lacking !== undefined) {
      const why = given.get(lacking) === 'skipped' ? ', because its step was skipped' : ''
      return { status: 'skipped', error: `${lacking} has no value${why}` }
    }
    if (missing[0] !== undefined) return { status: 'waiting', error: `${missing[0]} is not known yet` }
    try {
      const answer = await makeCall(fillCall(call, baseUrl, values), call.fields, step.name)
      if (call.kind !== 'e_invoice') signal = 'answered'
      Object.assign(found, answer.values)
      return endOf(answer)
    } catch (thrown) {
      if (thrown instanceof NotBegunError) {
        isNotBegun = true
        return { status: 'waiting', error: thrown.message }
      }
      if (!(thrown instanceof AppError) && !(thrown instanceof DeliveryError)) throw thrown
      const says = signalOf(thrown)
      if (signal !== 'answered' && says !== 'unknown') signal = says
      return { status: 'failed', error: thrown.message }
    }
  }
  for (const step of steps) {
    const call = callOf(step)
    const outcome = earlier(call, { ...document, ...found }) ?? {
      name: step.name,
      ...(await runStep(step, call)),
      at: new Date().toISOString(),
    }
    outcomes.push(outcome)
    for (const { name } of call.fields) given.set(name, outcome.status)
  }
  const hasProblem = outcomes.some(({ status }) => !isSettled(status) && status !== 'waiting')
  return { found, outcomes, isBusy: isNotBegun && !hasProblem, signal }
}

/** Returns whether nothing is left to find: every step is done or skipped. `skipped`: none but the link was for this document. */
export const settledAs = (steps: readonly StepSettings[], outcomes: readonly StepOutcome[]): 'complete' | 'skipped' | undefined => {
  if (!outcomes.every(({ status }) => isSettled(status))) return undefined
  const isLink = new Map(steps.map((step) => [step.name, callOf(step).fields.every(({ name }) => isLinkField(name))]))
  const isForOthers = outcomes.every(({ name, status }) => status === 'skipped' || isLink.get(name))
  return isForOthers && outcomes.some(({ status }) => status === 'skipped') ? 'skipped' : 'complete'
}
