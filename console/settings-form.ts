// The fields of the workspace settings. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'
import type { Field, Texts, Values } from './form.ts'
import { changed } from './schema-form.ts'

export type Settings = components['schemas']['Settings']['attributes']
export type NumberName = {
  [Name in keyof Settings]: Settings[Name] extends number | null ? Name : never
}[keyof Settings]

// Credentials are replaced as a whole. While both are empty, the stored ones stay.
const hasCredentials = (texts: Texts) => ['user', 'password'].some((name) => (texts[`rfc.credentials.${name}`] ?? '') !== '')

// A change may leave out any of them. A bridge needs them.
const rules: Record<string, Partial<Field>> = {
  'rfc.url': { isRequired: true },
  'rfc.client': { isRequired: true },
  'rfc.language': { empty: '' },
  'rfc.allowed_functions': { empty: [] },
  'rfc.ca_certificate': { input: 'lines', empty: '' },
  'rfc.credentials.user': { isSecret: false, requiredWhen: hasCredentials },
  'rfc.credentials.password': { requiredWhen: hasCredentials },
}

/** Returns the fields of the settings. In the compliance tier, the relay decides on the retention of the audit log. */
export const settingsFields = (all: readonly Field[], { tier }: Pick<Settings, 'tier'>): Field[] =>
  changed(all, { ...rules, audit_days: { isRequired: true } }).filter(({ path }) => path !== 'audit_days' || tier !== 'compliance')

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
