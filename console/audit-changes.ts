// Reads the metadata of audit log entries. Pure, so that it can be tested without a browser.

export interface Change {
  name: string
  /** Undefined if the value was not there. */
  before: string | undefined
  after: string | undefined
}

export interface ReadMetadata {
  changes: Change[]
  /** What else the entry says, without the key or the person who made the change. */
  others: [name: string, value: string][]
  keyId: string | undefined
  keyName: string | undefined
  personId: string | undefined
  personName: string | undefined
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Writes a value of the API: a text as it is, anything else as JSON. */
const written = (value: unknown): string | undefined => (value === undefined || typeof value === 'string' ? value : JSON.stringify(value))

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

export const readMetadata = ({
  before,
  after,
  key_id: keyId,
  key_name: keyName,
  person_id: personId,
  person_name: personName,
  ...others
}: Record<string, unknown>): ReadMetadata => {
  const [old, current] = [isObject(before) ? before : {}, isObject(after) ? after : {}]
  const changes = Object.keys({ ...old, ...current }).map((name) => ({ name, before: written(old[name]), after: written(current[name]) }))
  return {
    changes,
    others: Object.entries(others).map(([name, value]) => [name, written(value) ?? '']),
    keyId: textOf(keyId),
    keyName: textOf(keyName),
    personId: textOf(personId),
    personName: textOf(personName),
  }
}
