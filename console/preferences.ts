import { effect, signal } from '@preact/signals'
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

const isLanguageTag = (name: string): boolean => {
  try {
    return Intl.getCanonicalLocales(name).length > 0
  } catch {
    return false
  }
}

// Chromium names its language `en-US@posix` where LANG is C. Intl throws an error for it, and uPlot gives it navigator.language when it is loaded.
const spoken = navigator.languages.filter(isLanguageTag)
if (!isLanguageTag(navigator.language)) Object.defineProperty(navigator, 'language', { value: spoken[0] ?? 'en' })

export const language = signal<Language>(
  read<Language>('relay-language', ['en', 'de'], navigator.language.toLowerCase().startsWith('de') ? 'de' : 'en'),
)
export const theme = signal<Theme>(read('relay-theme', themes, 'system'))

/** Returns texts in the chosen language. A component that calls it is drawn again when the language changes. */
export const inLanguage = <Texts>(catalogue: Record<Language, Texts>): Texts => catalogue[language.value]

/** Returns the texts that every screen uses. */
export const texts = () => inLanguage(common)

/** Returns how dates and numbers are written: as the browser does, if it speaks the chosen language. */
export const locale = (): string => spoken.find((each) => each.split('-')[0] === language.value) ?? language.value

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
