// The fields of the form of a connection. Pure, so that it can be tested without a browser.
import { newValues, type Field, type Texts, type Values } from './form.ts'
import { changed } from './schema-form.ts'

/** Returns the fields of a connection, of which a stored one is switched elsewhere. @param all of the body of a new connection */
export const connectionFields = (all: readonly Field[], { isNew }: { isNew: boolean }): Field[] =>
  changed(all, {
    repository_ids: { input: 'checks' },
    destination_ids: { input: 'checks' },
    'settings.filter.content_types': { separator: /[\s,;]+/ },
    // The name of a component may contain blanks.
    'settings.filter.comp_ids': { separator: /,/ },
  }).filter(({ path }) => isNew || path !== 'is_active')

/** Returns the path template of a connection without one. */
export const defaultPathTemplate = (fields: readonly Field[]): string =>
  fields.find(({ path }) => path === 'settings.path_template')!.fallback

/** Returns the settings for the API. What is not given is left to the default. */
export const settingsOf = (fields: readonly Field[], texts: Texts): Values => (newValues(fields, texts).values['settings'] ?? {}) as Values
