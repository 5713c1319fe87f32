/** With what PostgreSQL cannot hold, as text or in jsonb, shown as such: NUL, and half a character. */
export const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed()
