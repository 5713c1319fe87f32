import { AppError } from '../errors.ts'

/** What a key may do, lowest first; each level may do what those before it may. */
export const keyLevels = ['viewer', 'member', 'admin'] as const

export type KeyLevel = (typeof keyLevels)[number]

export const isLevel = (text: string): text is KeyLevel => (keyLevels as readonly string[]).includes(text)

export const allows = (held: KeyLevel, needed: KeyLevel): boolean => keyLevels.indexOf(held) >= keyLevels.indexOf(needed)

/** @throws AppError 403 that names both levels */
export const demandLevel = (held: KeyLevel, needed: KeyLevel): void => {
  if (!allows(held, needed)) throw new AppError('forbidden', `This needs an API key of level ${needed}; yours is ${held}.`)
}
