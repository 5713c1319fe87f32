/** What a key may do, lowest first; each level may do what those before it may. */
export const levels = ['viewer', 'member', 'admin'] as const

export type Level = (typeof levels)[number]

export const isLevel = (text: string): text is Level => (levels as readonly string[]).includes(text)

export const allows = (held: Level, needed: Level): boolean => levels.indexOf(held) >= levels.indexOf(needed)
