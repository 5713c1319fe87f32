// The settings of a connection as a form has them: text. Pure, so that it can be tested without a browser.

export interface SettingsForm {
  /** Separated by commas or blanks. */
  contentTypes: string
  /** Separated by commas. */
  compIds: string
  minBytes: string
  maxBytes: string
  /** Empty for the default. */
  pathTemplate: string
  onResume: 'forward' | 'skip'
}

export const defaultPathTemplate = '{repo_id}/{doc_id}/{comp_id}'

interface Stored {
  filter?: { content_types?: string[]; comp_ids?: string[]; min_bytes?: number; max_bytes?: number }
  path_template?: string
  on_resume?: 'forward' | 'skip'
}

const written = (value: number | undefined) => (value === undefined ? '' : String(value))

/** Returns the settings that the API has returned as text to edit. */
export const formOf = (settings: Record<string, unknown>): SettingsForm => {
  const { filter = {}, path_template: pathTemplate = '', on_resume: onResume = 'forward' } = settings as Stored
  return {
    contentTypes: filter.content_types?.join(', ') ?? '',
    compIds: filter.comp_ids?.join(', ') ?? '',
    minBytes: written(filter.min_bytes),
    maxBytes: written(filter.max_bytes),
    pathTemplate,
    onResume,
  }
}

const parts = (text: string, separator: RegExp) =>
  text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** Returns the settings for the API. What is not given is left to the default. */
export const settingsOf = ({
  contentTypes,
  compIds,
  minBytes,
  maxBytes,
  pathTemplate,
  onResume,
}: SettingsForm): Record<string, unknown> => {
  const types = parts(contentTypes, /[\s,;]+/)
  // The name of a component may contain blanks.
  const components = parts(compIds, /,/)
  const filter = {
    ...(types.length > 0 && { content_types: types }),
    ...(components.length > 0 && { comp_ids: components }),
    ...(minBytes !== '' && { min_bytes: Number(minBytes) }),
    ...(maxBytes !== '' && { max_bytes: Number(maxBytes) }),
  }
  return {
    ...(Object.keys(filter).length > 0 && { filter }),
    ...(pathTemplate.trim() !== '' && { path_template: pathTemplate.trim() }),
    ...(onResume !== 'forward' && { on_resume: onResume }),
  }
}
