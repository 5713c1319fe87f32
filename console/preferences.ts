import { effect, signal } from '@preact/signals'
import { localeOf } from './format.ts'
import * as common from './texts/common.ts'

export type Language = 'en' | 'de'
export const languages: Record<Language, string> = { en: 'English', de: 'Deutsch' }

const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const read = <Value extends string>(name: string, values: readonly Value[], fallback: Value): Value => {
  // A browser may refuse storage.
  try {
    return values.find((value) => value === localStorage.getItem(name)) ?? fallback
  } catch {
    return fallback
  }
}

const keep = (name: string, value: string) => {
  try {
    localStorage.setItem(name, value)
  } catch {
    // The choice lasts until the page is closed.
  }
}

export const language = signal<Language>(
  read<Language>('relay-language', ['en', 'de'], navigator.language.toLowerCase().startsWith('de') ? 'de' : 'en'),
)
export const theme = signal<Theme>(read('relay-theme', themes, 'system'))

/** Returns a function that gives texts in the chosen language. A component that calls it is drawn again when the language changes. */
export const inLanguage =
  <Texts>(catalogue: Record<Language, Texts>): (() => Texts) =>
  () =>
    catalogue[language.value]

/** Returns the texts that every screen uses. */
export const texts = inLanguage(common)

/** Returns how dates and numbers are written: as the browser does, if it speaks the chosen language. */
export const locale = (): string => localeOf(language.value, navigator.languages)

effect(() => {
  document.documentElement.lang = language.value
})
effect(() => {
  document.documentElement.dataset['theme'] = theme.value
})

export const setLanguage = (value: Language) => {
  language.value = value
  keep('relay-language', value)
}

export const setTheme = (value: Theme) => {
  theme.value = value
  keep('relay-theme', value)
}
