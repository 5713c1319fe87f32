/** Returns a number and its noun: `1 delivery`, `2 deliveries`. */
export const countOf = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`
