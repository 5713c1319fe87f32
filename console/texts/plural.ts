/** Returns a number with the noun that it needs. */
export const plural = (locale: string, count: number, one: string, many: string): string =>
  `${count.toLocaleString(locale)} ${count === 1 ? one : many}`
