// The fields of the workspace settings. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'
import { settingsBounds } from '../src/domain/bounds.ts'
import { fieldAt, type Field, type Texts, type Values } from './form.ts'

export type Settings = components['schemas']['Settings']['attributes']
export type NumberName = keyof typeof settingsBounds

/** Settings that may be left empty. */
const optionalNumbers: ReadonlySet<string> = new Set<NumberName>(['content_days', 'receiver_max_bytes', 'receiver_max_requests_per_minute'])

const numberFields = Object.entries(settingsBounds).map(([path, { min, max }]: [string, { min: number; max?: number }]) =>
  fieldAt(path, 'number', { isInteger: true, isRequired: !optionalNumbers.has(path), minimum: min, maximum: max }),
)

const hasBridge = (texts: Texts) => texts['rfc'] === 'true'
// Credentials are replaced as a whole. While both are empty, the stored ones stay.
const hasCredentials = (texts: Texts) =>
  hasBridge(texts) && ['user', 'password'].some((name) => (texts[`rfc.credentials.${name}`] ?? '') !== '')

const otherFields = [
  fieldAt('receiver_allowed_cidrs', 'list', { empty: [] }),
  fieldAt('rfc', 'object'),
  fieldAt('rfc.url', 'text', { isRequired: true, when: hasBridge }),
  fieldAt('rfc.client', 'text', { isRequired: true, when: hasBridge }),
  fieldAt('rfc.language', 'text', { empty: '', when: hasBridge }),
  fieldAt('rfc.allowed_functions', 'list', { empty: [], when: hasBridge }),
  fieldAt('rfc.ca_certificate', 'lines', { empty: '', when: hasBridge }),
  fieldAt('rfc.credentials.user', 'text', { isRequired: true, when: hasCredentials }),
  fieldAt('rfc.credentials.password', 'text', { isRequired: true, isSecret: true, when: hasCredentials }),
]

/** Returns the fields of the settings. In the compliance tier, the relay decides on the retention of the audit log. */
export const settingsFields = ({ tier }: Pick<Settings, 'tier'>): Field[] => [
  ...numberFields.filter(({ path }) => path !== 'audit_days' || tier !== 'compliance'),
  ...otherFields,
]

type SettingsProblem = 'orderOfWaits' | 'ttlTooShort'

/** Returns which settings do not go together with others. A value that cannot be read is left out. */
export const checkSettings = (values: Values): Record<string, SettingsProblem> => {
  const {
    max_retries: retries = 0,
    retry_ttl_seconds: ttl = Infinity,
    retry_initial_interval_seconds: first = 0,
    retry_max_interval_seconds: longest = Infinity,
  } = values as Partial<Record<NumberName, number>>
  return {
    ...(first > longest && { retry_initial_interval_seconds: 'orderOfWaits' as const }),
    ...(retries > 0 && ttl < first && { retry_ttl_seconds: 'ttlTooShort' as const }),
  }
}
