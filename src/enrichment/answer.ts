import { threadTask } from '../base/thread-task.ts'
import { toFieldValue } from '../domain/field-values.ts'
import { jsonPath } from './json-path.ts'
import type { ReadField } from './settings.ts'

interface AnswerInput {
  /** JSON. */
  text: string
  fields: ReadField[]
}

/** What the fields of a step are in an answer. */
export interface FoundFields {
  /** Values by the names of the fields. */
  values: Record<string, string>
  /** Why the other fields have no value. */
  problems: { name: string; problem: string; optional: boolean }[]
  /** Why no field has a value, if that has one reason. */
  reason?: string
}

/** Reads the fields of a step in an answer. Runs on a thread: an answer may have two megabytes, and a path may visit all of it. */
export const readFields = ({ text, fields }: AnswerInput): FoundFields => {
  const found: FoundFields = { values: {}, problems: [] }
  const refuse = ({ name, optional }: ReadField, problem: string) => found.problems.push({ name, problem, optional })
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    for (const field of fields) refuse(field, 'is not in the answer, which is no JSON')
    return found
  }
  for (const field of fields) {
    try {
      const [first] = jsonPath.query(field.path, answer as Parameters<typeof jsonPath.query>[1]).values()
      const value = first === undefined ? { problem: 'is not in the answer' } : toFieldValue(field.type, first, field.ofDocument)
      if ('value' in value) found.values[field.name] = value.value
      else refuse(field, value.problem)
    } catch {
      refuse(field, 'cannot be looked for: the answer is nested too deeply')
    }
  }
  return found
}

export const readFieldsTask = threadTask(import.meta.url, readFields)
