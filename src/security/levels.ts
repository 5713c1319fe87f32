import { AppError } from '../base/errors.ts'

/** Levels of API keys, lowest first. Each level includes the permissions of the previous ones. */
export const keyLevels = ['viewer', 'member', 'admin'] as const

export type KeyLevel = (typeof keyLevels)[number]

export const isLevel = (text: string): text is KeyLevel => (keyLevels as readonly string[]).includes(text)

export const allows = (level: KeyLevel, required: KeyLevel): boolean => keyLevels.indexOf(level) >= keyLevels.indexOf(required)

/** Checks that a level is sufficient. @throws `AppError` 403 that names both levels */
export const demandLevel = (level: KeyLevel, required: KeyLevel): void => {
  if (!allows(level, required)) {
    throw new AppError('forbidden', `This operation requires an API key of level ${required}. This key has level ${level}.`)
  }
}
