import { z } from 'zod'
import { plainMessages } from '../base/issue-messages.ts'
import { auditDaysMin, settingsBounds, type Tier } from './bounds.ts'
import { toCamelCase, toSnakeCase, type CamelCasedOutput } from './casing.ts'
import type { RetryPolicy } from './retry.ts'
import { rfcBoundKeys, rfcFields, rfcPatchFields } from './rfc-settings.ts'

const bounded = ({ min, max }: { min: number; max: number }) => z.int().min(min).max(max)
const allowedCidrsMax = 256

export const addressRanges = z
  .array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be an address range, like 10.0.0.0/8 or fd00::/8' }))
  .max(allowedCidrsMax)

export const workspaceSettingsFields = z.strictObject({
  max_retries: bounded(settingsBounds.max_retries).describe('Attempts after the first one; 0 disables retries'),
  retry_ttl_seconds: bounded(settingsBounds.retry_ttl_seconds).describe('Every attempt starts within this time after the first one'),
  retry_initial_interval_seconds: bounded(settingsBounds.retry_initial_interval_seconds).describe(
    'Delay before the second attempt; it doubles with each further attempt',
  ),
  retry_max_interval_seconds: bounded(settingsBounds.retry_max_interval_seconds).describe('Longest delay between two attempts'),
  captured_requests_days: bounded(settingsBounds.captured_requests_days).describe('Retention of captured requests'),
  captured_bodies_days: bounded(settingsBounds.captured_bodies_days).describe('Retention of the bodies of captured requests'),
  audit_days: bounded(settingsBounds.audit_days)
    .nullable()
    .describe('Retention of audit log entries. In the compliance tier always `null`: entries are kept indefinitely'),
  events_days: bounded(settingsBounds.events_days).describe('Retention of events. With 0, none are written'),
  content_days: bounded(settingsBounds.content_days)
    .nullable()
    .describe(
      'Retention of the content of documents with which nothing is left to be done: no delivery is open, and what has failed is acknowledged; ' +
        '`null` keeps it indefinitely',
    ),
  receiver_allowed_cidrs: addressRanges.describe('Addresses that the source system may send from; empty allows any address'),
  receiver_max_bytes: z
    .int()
    .min(settingsBounds.receiver_max_bytes.min)
    .nullable()
    .describe('Bytes of content that the workspace may store; `null` applies the limit of the installation, which is never exceeded'),
  receiver_max_requests_per_minute: z
    .int()
    .min(settingsBounds.receiver_max_requests_per_minute.min)
    .nullable()
    .describe(
      'Requests per minute that a receiver process accepts for the workspace; `null` applies the limit of the installation, ' +
        'which is never exceeded',
    ),
  rfc: rfcFields.meta({ id: 'RfcSettings' }).nullable().describe('System whose functions the bridge calls; `null` switches the bridge off'),
})

type SnakeCaseSettings = z.output<typeof workspaceSettingsFields>
export type WorkspaceSettings = CamelCasedOutput<typeof workspaceSettingsFields>
/** Schema of a change: only the given settings change. */
export const settingsPatchFields = workspaceSettingsFields.partial().extend({
  rfc: rfcPatchFields
    .meta({ id: 'RfcSettingsChange' })
    .nullable()
    .optional()
    .describe('System whose functions the bridge calls: the given keys are merged; `null` switches the bridge off'),
})

const defaults: SnakeCaseSettings = {
  max_retries: 10,
  retry_ttl_seconds: 86_400,
  retry_initial_interval_seconds: 10,
  retry_max_interval_seconds: 3_600,
  captured_requests_days: 30,
  captured_bodies_days: 7,
  audit_days: auditDaysMin,
  events_days: 7,
  content_days: null,
  receiver_allowed_cidrs: [],
  receiver_max_bytes: null,
  receiver_max_requests_per_minute: null,
  rfc: null,
}

const names = Object.keys(defaults) as (keyof SnakeCaseSettings)[]

const effective = (stored: unknown): SnakeCaseSettings => {
  const known = Object.fromEntries(Object.entries(stored as object).filter(([name]) => Object.hasOwn(defaults, name)))
  return workspaceSettingsFields.parse({ ...defaults, ...known })
}

/** Returns the effective settings from the column `workspaces.settings`, which holds only values that differ from the defaults. */
export const workspaceSettings = (stored: unknown): WorkspaceSettings => toCamelCase(workspaceSettingsFields, effective(stored))

/** Returns for how many days a workspace keeps its audit log; null means indefinitely. */
export const auditDaysOf = (settings: WorkspaceSettings, tier: Tier): number | null => (tier === 'compliance' ? null : settings.auditDays)

interface SettingsIssue {
  path: string
  message: string
}

/** Old and new values of the settings that a change alters, as the audit log records them. */
export interface SettingsDifference {
  before: Record<string, unknown>
  after: Record<string, unknown>
}

/**
 * Applies a change to stored settings and checks the rules that involve more than one setting.
 * @returns the issues, the new value of the column, and the difference for the audit log
 */
export const changeSettings = (
  stored: object,
  patch: CamelCasedOutput<typeof settingsPatchFields>,
  tier: Tier,
): { issues: SettingsIssue[]; stored: object; difference: SettingsDifference } => {
  const current = effective(stored)
  const { rfc: rfcPatch, ...settingsPatch } = toSnakeCase(settingsPatchFields, patch) as Partial<SnakeCaseSettings> & {
    rfc?: RfcPatch | null
  }
  const { rfc, issues } = changeRfc(current.rfc, rfcPatch)
  const next = { ...current, ...settingsPatch, rfc }
  if (next.retry_initial_interval_seconds > next.retry_max_interval_seconds) {
    issues.push({ path: 'retry_initial_interval_seconds', message: 'must not be longer than retry_max_interval_seconds' })
  }
  if (next.max_retries > 0 && next.retry_ttl_seconds < next.retry_initial_interval_seconds) {
    const message = 'must not be shorter than retry_initial_interval_seconds, unless max_retries is 0'
    issues.push({ path: 'retry_ttl_seconds', message })
  }
  if (patch.auditDays !== undefined && tier === 'compliance') {
    issues.push({ path: 'audit_days', message: 'cannot be set: a workspace of the compliance tier keeps its audit log indefinitely' })
  } else if (patch.auditDays === null) {
    issues.push({
      path: 'audit_days',
      message: 'must be a number: only a workspace of the compliance tier keeps its audit log indefinitely',
    })
  }
  const changed: Record<string, unknown> = { ...stored }
  for (const name of names) {
    if (JSON.stringify(next[name]) === JSON.stringify(defaults[name])) delete changed[name]
    else changed[name] = next[name]
  }
  return { issues, stored: changed, difference: differenceOf(current, next, rfcPatch?.credentials !== undefined) }
}

const redacted = '[REDACTED]'

/** Returns settings by the names under which the audit log records them: `rfc` key by key, its credentials redacted. */
const recordedValues = ({ rfc, ...settings }: SnakeCaseSettings): Record<string, unknown> => ({
  ...settings,
  ...Object.fromEntries(Object.entries(rfc ?? {}).map(([name, value]) => [`rfc.${name}`, value])),
  ...(rfc && { 'rfc.credentials': redacted }),
})

const differenceOf = (current: SnakeCaseSettings, next: SnakeCaseSettings, hasNewCredentials: boolean): SettingsDifference => {
  const [before, after] = [recordedValues(current), recordedValues(next)]
  const isChanged = (name: string) =>
    JSON.stringify(before[name]) !== JSON.stringify(after[name]) || (hasNewCredentials && name === 'rfc.credentials')
  const changed = Object.keys({ ...before, ...after }).filter(isChanged)
  const valuesOf = (values: Record<string, unknown>) => Object.fromEntries(changed.map((name) => [name, values[name] ?? null]))
  return { before: valuesOf(before), after: valuesOf(after) }
}

type RfcPatch = z.output<typeof rfcPatchFields>

/** Returns the keys of stored RFC settings that their credentials are sealed together with, and their values. */
export const rfcBoundValues = (stored: object): [key: string, value: string][] => {
  const { rfc } = effective(stored)
  return rfcBoundKeys.flatMap((key) => (rfc?.[key] === undefined ? [] : [[key, rfc[key]]]))
}

/**
 * Merges a change of the RFC settings. A change of a bound key requires the credentials again: the stored ones must not reach another system.
 */
const changeRfc = (
  current: SnakeCaseSettings['rfc'],
  patch: RfcPatch | null | undefined,
): { rfc: SnakeCaseSettings['rfc']; issues: SettingsIssue[] } => {
  if (patch === undefined) return { rfc: current, issues: [] }
  if (patch === null) return { rfc: null, issues: [] }
  const { credentials, ...change } = patch
  const merged = rfcFields.safeParse({ ...current, ...change }, plainMessages)
  if (!merged.success) {
    return { rfc: current, issues: merged.error.issues.map(({ path, message }) => ({ path: ['rfc', ...path].join('.'), message })) }
  }
  const moved = rfcBoundKeys.filter((key) => merged.data[key] !== current?.[key])
  const keys = moved.map((key) => `rfc.${key}`).join(', ')
  const message = `required: the stored credentials must not be sent to another system. Send them together with the change of ${keys}`
  const issues = moved.length > 0 && !credentials ? [{ path: 'rfc.credentials', message }] : []
  return { rfc: merged.data, issues }
}

/** Returns the retry settings in the form that workflows pin. */
export const retryPolicyOf = (settings: WorkspaceSettings): RetryPolicy => ({
  maxRetries: settings.maxRetries,
  ttlMs: settings.retryTtlSeconds * 1_000,
  initialIntervalMs: settings.retryInitialIntervalSeconds * 1_000,
  maxIntervalMs: settings.retryMaxIntervalSeconds * 1_000,
})
