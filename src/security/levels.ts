import { AppError } from '../base/errors.ts'

/** Levels of API keys and people, lowest first. Each level includes the permissions of the previous ones. */
export const keyLevels = ['viewer', 'member', 'admin'] as const

export type KeyLevel = (typeof keyLevels)[number]

export const isLevel = (text: string): text is KeyLevel => (keyLevels as readonly string[]).includes(text)

export const allows = (level: KeyLevel, required: KeyLevel): boolean => keyLevels.indexOf(level) >= keyLevels.indexOf(required)

/** Checks that the level of a caller is sufficient. @throws `AppError` 403 that names both levels */
export const demandLevel = ({ type, level }: { type: 'api_key' | 'user'; level: KeyLevel }, required: KeyLevel): void => {
  if (allows(level, required)) return
  const message =
    type === 'api_key'
      ? `This operation requires an API key of level ${required}. This key has level ${level}.`
      : `This operation requires level ${required}. You have level ${level} in this workspace.`
  throw new AppError('forbidden', message)
}
