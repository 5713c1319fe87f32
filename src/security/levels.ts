/** What a key may do, lowest first; each level may do what those before it may. */
export const keyLevels = ['viewer', 'member', 'admin'] as const

export type KeyLevel = (typeof keyLevels)[number]

export const isLevel = (text: string): text is KeyLevel => (keyLevels as readonly string[]).includes(text)

export const allows = (held: KeyLevel, needed: KeyLevel): boolean => keyLevels.indexOf(held) >= keyLevels.indexOf(needed)
