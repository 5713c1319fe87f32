import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseDocument } from 'yaml'
import type { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { readReference, type Reference } from '../config/references.ts'

type Refuse = (problem: string) => UserError

/**
 * Reads a file of YAML or JSON that a variable names.
 * @returns its content, the folder in which relative paths start, and the error that says what else is wrong with it
 * @throws `UserError` that says what is wrong, without a secret
 */
export const readSettingsFile = async <Schema extends z.ZodType>(
  variable: string,
  path: string,
  schema: Schema,
): Promise<{ content: z.output<Schema>; folder: string; refuse: Refuse }> => {
  const refuse: Refuse = (problem) => new UserError(`${variable}: ${path} ${problem}`)
  const written = await readFile(path, 'utf8').catch((thrown: unknown) => {
    throw refuse(`cannot be read: ${messageOf(thrown)}`)
  })
  // The excerpt that `prettyErrors` adds to a message could contain a secret that was written into the file.
  const document = parseDocument(written, { prettyErrors: false })
  if (document.errors.length > 0) throw refuse(`is not valid YAML: ${document.errors[0]!.message}`)
  let content: unknown
  try {
    content = document.toJS()
  } catch {
    throw refuse('has an alias without an anchor, or too many aliases')
  }
  const parsed = schema.safeParse(content, plainMessages)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the file'} ${issue.message}`)
    throw refuse(`is invalid: ${issues.join('; ')}`)
  }
  return { content: parsed.data, folder: dirname(resolve(path)), refuse }
}

/** Reads the values of references. @throws `UserError` that names the one that cannot be read */
export const readReferencesOf = async (
  references: Record<string, Reference>,
  { folder, variables, refuse }: { folder: string; variables: NodeJS.ProcessEnv; refuse: Refuse },
): Promise<Record<string, string>> => {
  const values: Record<string, string> = {}
  for (const [name, from] of Object.entries(references)) {
    const found = await readReference(from, folder, variables)
    if ('message' in found) throw refuse(`is invalid: ${name}: ${found.message}`)
    values[name] = found.text
  }
  return values
}
