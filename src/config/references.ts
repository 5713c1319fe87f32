import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { z } from 'zod'

/** A secret value of a file that administrators write: where it is read, instead of the value itself. */
export const reference = z
  .union(
    [
      z.strictObject({
        env: z
          .string()
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
          .describe('The environment variable that contains the value.'),
      }),
      z.strictObject({
        file: z.string().min(1).describe('The file that contains the value. A relative path starts at the folder of this document.'),
      }),
    ],
    { error: 'must be { env: NAME } or { file: PATH }' },
  )
  .meta({ id: 'Reference' })
  .describe('Where the relay reads a secret value.')

export type Reference = z.output<typeof reference>

/** Reads the value of a reference. @param folder where relative paths start @returns a message without the value if it cannot be read */
export const readReference = async (
  from: Reference,
  folder: string,
  variables: NodeJS.ProcessEnv,
): Promise<{ text: string } | { message: string }> => {
  if ('env' in from) {
    const text = variables[from.env]
    return text ? { text } : { message: `the environment variable ${from.env} is not set` }
  }
  try {
    // Editors and `echo` end a file with a line break that does not belong to the secret.
    return { text: (await readFile(resolve(folder, from.file), 'utf8')).replace(/\r?\n$/, '') }
  } catch (thrown) {
    return { message: `the file ${from.file} cannot be read (${(thrown as NodeJS.ErrnoException).code})` }
  }
}
