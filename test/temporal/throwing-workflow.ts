/** Throws what is no failure of Temporal's: the workflow stays open, and its task is repeated. */
export async function throwError(text: string): Promise<void> {
  throw Object.assign(new Error(text, { cause: new Error(text) }), { name: text })
}
