// The form of the workspace settings. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'
import { settingsBounds } from '../src/domain/bounds.ts'
import { changedEntries, linesOf, readNumber, type NumberProblem } from './form-values.ts'

export type Settings = components['schemas']['Settings']['attributes']
export type NumberName = keyof typeof settingsBounds
type RfcName = 'url' | 'client' | 'language' | 'allowed_functions' | 'ca_certificate' | 'user' | 'password'

/** Settings that may be left empty. */
export const optionalNumbers: ReadonlySet<NumberName> = new Set<NumberName>([
  'content_days',
  'receiver_max_bytes',
  'receiver_max_requests_per_minute',
])

/** What stands in the fields of the form. */
export interface SettingsTexts {
  numbers: Record<NumberName, string>
  allowedCidrs: string
  isBridgeOn: boolean
  rfc: Record<RfcName, string>
}

export type SettingsProblem = NumberProblem | 'orderOfWaits' | 'ttlTooShort'

const numberNames = Object.keys(settingsBounds) as NumberName[]

/** Returns what the form shows at first. */
export const textsOfSettings = (settings: Settings): SettingsTexts => ({
  numbers: Object.fromEntries(numberNames.map((name) => [name, settings[name] === null ? '' : String(settings[name])])) as Record<
    NumberName,
    string
  >,
  allowedCidrs: settings.receiver_allowed_cidrs.join('\n'),
  isBridgeOn: settings.rfc !== null,
  rfc: {
    url: settings.rfc?.url ?? '',
    client: settings.rfc?.client ?? '',
    language: settings.rfc?.language ?? '',
    allowed_functions: settings.rfc?.allowed_functions.join('\n') ?? '',
    ca_certificate: settings.rfc?.ca_certificate ?? '',
    user: '',
    password: '',
  },
})

/** Returns the change of the bridge that the form asks for, or undefined if it asks for none. */
const rfcChange = ({ isBridgeOn, rfc }: SettingsTexts, current: Settings['rfc']): object | null | undefined => {
  if (!isBridgeOn) return current === null ? undefined : null
  const { user, password, allowed_functions: functions, ...fields } = rfc
  const filled = Object.entries(fields)
    .map(([name, text]) => [name, text.trim()] as const)
    .filter(([name, text]) => text !== '' || name in (current ?? {}))
  const change = {
    ...changedEntries({ ...current }, { ...Object.fromEntries(filled), allowed_functions: linesOf(functions) }),
    ...((user !== '' || password !== '') && { credentials: { user, password } }),
  }
  return Object.keys(change).length > 0 || current === null ? change : undefined
}

/**
 * Compares the form with the settings that are stored.
 * @returns the change to send, or what is wrong with which setting
 */
export const readSettings = (
  texts: SettingsTexts,
  current: Settings,
): { change: Record<string, unknown> } | { problems: Partial<Record<NumberName, SettingsProblem>> } => {
  const problems: Partial<Record<NumberName, SettingsProblem>> = {}
  const numbers = {} as Record<NumberName, number | null>
  for (const name of numberNames) {
    // The relay decides in the compliance tier.
    if (name === 'audit_days' && current.tier === 'compliance') continue
    const read = readNumber(texts.numbers[name], settingsBounds[name], optionalNumbers.has(name))
    if ('problem' in read) problems[name] = read.problem
    else numbers[name] = read.value
  }
  const {
    max_retries: retries,
    retry_ttl_seconds: ttl,
    retry_initial_interval_seconds: first,
    retry_max_interval_seconds: longest,
  } = numbers
  if (Object.keys(problems).length === 0) {
    if (first! > longest!) problems.retry_initial_interval_seconds = 'orderOfWaits'
    if (retries! > 0 && ttl! < first!) problems.retry_ttl_seconds = 'ttlTooShort'
  }
  if (Object.keys(problems).length > 0) return { problems }
  const rfc = rfcChange(texts, current.rfc)
  const plain = { ...numbers, receiver_allowed_cidrs: linesOf(texts.allowedCidrs) }
  return { change: { ...changedEntries({ ...current }, plain), ...(rfc !== undefined && { rfc }) } }
}
