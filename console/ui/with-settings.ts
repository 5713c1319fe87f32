import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as settingsCatalogue from '../texts/settings.ts'

/** Shows a text. The names of settings in it are links to the settings, with the labels that they have there. */
export const WithSettings = ({ text }: { text: string }) => {
  const { fields } = inLanguage(settingsCatalogue)
  const labels = new Map(Object.entries(fields))
  return html`${text.split(/\b(\w+)\b/).map((part) => (part.includes('_') && labels.has(part) ? html`<a href="settings">${labels.get(part)}</a>` : part))}`
}
