import { isDeepStrictEqual } from 'node:util'
import { dryRunNote } from '../output.ts'
import { kindName, type ApplyOptions, type Change, type FieldChange } from './change.ts'

/** Returns lines for people: what differs, and how many objects there are of each kind of change. */
export const describeChanges = (changes: readonly Change[], options: ApplyOptions): string[] => [
  ...changes.flatMap(describeChange),
  describeSum(changes, options),
]

const words: Record<Exclude<Change['action'], 'unchanged'>, string> = {
  create: 'create',
  update: 'update',
  delete: 'delete',
  not_created: 'not created',
  not_in_file: 'not in file',
}

const describeChange = ({ workspace, kind, name, action, fields = [], key }: Change): string[] =>
  action === 'unchanged'
    ? []
    : [
        [
          `${words[action].padEnd(11)}  ${workspace}  ${kindName(kind)}`,
          ...(kind === 'workspace' || kind === 'settings' || kind === 'tier' ? [] : [` ${name}`]),
          ...(key ? [`: ${key}`] : []),
          ...(action === 'not_created' ? [' (use --print-new-keys)'] : []),
        ].join(''),
        ...fields.flatMap(describeField),
      ]

/** Returns a line for each value that differs: `max_retries: 7 -> 9`. */
const describeField = ({ name, before, after }: FieldChange): string[] => {
  if (isObject(before) && isObject(after)) {
    return Object.keys({ ...before, ...after })
      .filter((key) => !isDeepStrictEqual(before[key], after[key]))
      .flatMap((key) => describeField({ name: `${name}.${key}`, before: before[key], after: after[key] }))
  }
  const isSecret = before === undefined && after === undefined
  return [`${' '.repeat(13)}${name}${isSecret ? '' : `: ${describeValue(before)} -> ${describeValue(after)}`}`]
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

const describeValue = (value: unknown): string => (value === undefined ? 'not set' : JSON.stringify(value))

const describeSum = (changes: readonly Change[], { dryRun }: ApplyOptions): string => {
  const count = (wanted: Change['action']) => changes.filter(({ action }) => action === wanted).length
  const sum = `${count('create')} created, ${count('update')} updated, ${count('delete')} deleted, ${count('unchanged')} unchanged`
  const rest = `${count('not_created')} not created, ${count('not_in_file')} not in the file`
  return `${dryRunNote(dryRun)}${sum}, ${rest}.`
}
