// The settings of a connection as fields of a form. Pure, so that it can be tested without a browser.
import { fieldAt, newValues, partsOf, type Field, type Texts, type Values } from './form.ts'

export const defaultPathTemplate = '{repo_id}/{doc_id}/{comp_id}'

const size = { isInteger: true, minimum: 0 }

export const settingsFields: readonly Field[] = [
  fieldAt('settings.filter.content_types', 'list', { separator: /[\s,;]+/ }),
  // The name of a component may contain blanks.
  fieldAt('settings.filter.comp_ids', 'list', { separator: /,/ }),
  fieldAt('settings.filter.min_bytes', 'number', size),
  fieldAt('settings.filter.max_bytes', 'number', size),
  // Several values are separated by commas.
  fieldAt('settings.filter.fields', 'pairs'),
  fieldAt('settings.path_template', 'text', { maxLength: 500 }),
  fieldAt('settings.properties', 'pairs'),
  fieldAt('settings.on_resume', 'choice', { fallback: 'forward', choices: ['forward', 'skip'] }),
]

/** Returns the settings for the API. What is not given is left to the default. */
export const settingsOf = (texts: Texts): Values => {
  const settings = (newValues(settingsFields, texts).values['settings'] ?? {}) as { filter?: { fields?: Record<string, string> } }
  const { filter } = settings
  if (!filter?.fields) return settings
  const fields = Object.entries(filter.fields).map(([name, text]) => {
    const values = partsOf(text, ',')
    return [name, values.length > 1 ? values : text]
  })
  return { ...settings, filter: { ...filter, fields: Object.fromEntries(fields) } }
}
