import { z } from 'zod'
import type { RetryPolicy } from './retry.ts'
import { rfcFields, rfcPatchFields } from './rfc-settings.ts'
import { inward, outward, type InsideOf } from './wire.ts'

const days = (highest: number) => z.int().min(1).max(highest)
const dayMax = 36_500
const monthSeconds = 30 * 86_400
const allowedCidrsMax = 256

/** Every setting of a workspace as the API shows it. The bounds of what is captured are those of the specification (8.2). */
export const workspaceSettingsFields = z.strictObject({
  max_retries: z.int().min(0).max(100).describe('Tries after the first one; 0 means none'),
  retry_ttl_seconds: z.int().min(1).max(monthSeconds).describe('Every try begins within this time of the first one'),
  retry_initial_interval_seconds: z.int().min(1).max(86_400).describe('Before the second try; doubles from there'),
  retry_max_interval_seconds: z.int().min(1).max(86_400).describe('The longest pause between two tries'),
  captured_requests_days: days(90).describe('How long captured requests are kept'),
  captured_bodies_days: days(30).describe('How long their bodies are kept'),
  audit_days: days(dayMax).nullable().describe('How long audit entries are kept; null, for compliance-tier workspaces only: indefinitely'),
  content_days: days(dayMax).nullable().describe('How long the bytes of delivered documents are kept; null: indefinitely'),
  receiver_allowed_cidrs: z
    .array(z.union([z.cidrv4(), z.cidrv6()]))
    .max(allowedCidrsMax)
    .describe('Where the source system may send from; empty: anywhere'),
  rfc: rfcFields.nullable().describe('The system whose functions the bridge calls; null: no bridge'),
})

type WireSettings = z.output<typeof workspaceSettingsFields>
export type WorkspaceSettings = InsideOf<typeof workspaceSettingsFields>
/** A change names those it is about. */
export const settingsPatchFields = workspaceSettingsFields.partial().extend({
  rfc: rfcPatchFields.nullable().optional().describe('The system whose functions the bridge calls: merged in; null ends the bridge'),
})

const defaults: WireSettings = {
  max_retries: 10,
  retry_ttl_seconds: 86_400,
  retry_initial_interval_seconds: 10,
  retry_max_interval_seconds: 3_600,
  captured_requests_days: 30,
  captured_bodies_days: 7,
  audit_days: 365,
  content_days: null,
  receiver_allowed_cidrs: [],
  rfc: null,
}

const names = Object.keys(defaults) as (keyof WireSettings)[]

const effective = (stored: unknown): WireSettings => {
  const known = Object.fromEntries(Object.entries(stored as object).filter(([name]) => Object.hasOwn(defaults, name)))
  return workspaceSettingsFields.parse({ ...defaults, ...known })
}

/** The settings in force, from what the column `workspaces.settings` holds: only what differs from the defaults. */
export const workspaceSettings = (stored: unknown): WorkspaceSettings => inward(workspaceSettingsFields, effective(stored))

export interface SettingsFault {
  path: string
  message: string
}

/**
 * What the column must hold after a change, or what speaks against it: rules that look at more than one value.
 */
export const changeSettings = (
  stored: object,
  patch: InsideOf<typeof settingsPatchFields>,
  workspace: { complianceTier: boolean },
): { faults: SettingsFault[]; stored: object } => {
  const current = effective(stored)
  const { rfc: rfcPatch, ...wirePatch } = outward(settingsPatchFields, patch) as Partial<WireSettings> & { rfc?: RfcPatch | null }
  const { rfc, faults } = changeRfc(current.rfc, rfcPatch)
  const next = { ...current, ...wirePatch, rfc }
  if (next.retry_initial_interval_seconds > next.retry_max_interval_seconds) {
    faults.push({ path: 'retry_initial_interval_seconds', message: 'must not be longer than retry_max_interval_seconds' })
  }
  if (next.audit_days === null && !workspace.complianceTier) {
    faults.push({ path: 'audit_days', message: 'only a compliance-tier workspace keeps its audit log indefinitely' })
  }
  const changed: Record<string, unknown> = { ...stored }
  for (const name of names) {
    if (JSON.stringify(next[name]) === JSON.stringify(defaults[name])) delete changed[name]
    else changed[name] = next[name]
  }
  return { faults, stored: changed }
}

type RfcPatch = z.output<typeof rfcPatchFields>

/** Credentials lie elsewhere, sealed; they go to no system that they were not given for. */
const changeRfc = (
  current: WireSettings['rfc'],
  patch: RfcPatch | null | undefined,
): { rfc: WireSettings['rfc']; faults: SettingsFault[] } => {
  if (patch === undefined) return { rfc: current, faults: [] }
  if (patch === null) return { rfc: null, faults: [] }
  const { credentials, ...change } = patch
  const merged = rfcFields.safeParse({ ...current, ...change })
  if (!merged.success) {
    return { rfc: current, faults: merged.error.issues.map(({ path, message }) => ({ path: ['rfc', ...path].join('.'), message })) }
  }
  const faults =
    merged.data.url !== current?.url && !credentials ? [{ path: 'rfc.credentials', message: 'a new url needs the credentials again' }] : []
  return { rfc: merged.data, faults }
}

/** The retry settings as a delivery's workflow pins them. */
export const retryPolicyOf = (settings: WorkspaceSettings): RetryPolicy => ({
  maxRetries: settings.maxRetries,
  ttlMs: settings.retryTtlSeconds * 1_000,
  initialIntervalMs: settings.retryInitialIntervalSeconds * 1_000,
  maxIntervalMs: settings.retryMaxIntervalSeconds * 1_000,
})
