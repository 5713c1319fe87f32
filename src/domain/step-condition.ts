import { valueIn, type LinkField } from './field-template.ts'

/** The documents that a step of an enrichment is for. All conditions must be met. */
export interface StepCondition extends Partial<Record<Exclude<LinkField, 'erp_object_id'>, string[] | undefined>> {
  /** Names of fields that must have a value. */
  fields?: string[] | undefined
}

/** What is known of a document while its steps run. */
interface Known {
  values: Readonly<Record<string, string>>
  /** Whether a step may still find the value of a name that has none. */
  isOpen: (name: string) => boolean
}

/** `skip`: the step is for other documents. `wait`: that is not known yet. */
export type Applicability = { decision: 'apply' } | { decision: 'skip' | 'wait'; reason: string }

/** Returns whether a step is for a document. */
export const applicability = ({ fields = [], ...types }: StepCondition, { values, isOpen }: Known): Applicability => {
  const wanted = Object.entries(types).filter(([, allowed]) => allowed !== undefined)
  for (const [name, allowed] of wanted) {
    const value = valueIn(values, name)
    if (value !== undefined && !allowed.some((each) => each.toLowerCase() === value.toLowerCase())) {
      return { decision: 'skip', reason: `${name} is ${value}` }
    }
  }
  const missing = [...wanted.map(([name]) => name), ...fields].filter((name) => valueIn(values, name) === undefined)
  const lacking = missing.find((name) => !isOpen(name))
  if (lacking !== undefined) return { decision: 'skip', reason: `${lacking} has no value` }
  return missing[0] === undefined ? { decision: 'apply' } : { decision: 'wait', reason: `${missing[0]} is not known yet` }
}
