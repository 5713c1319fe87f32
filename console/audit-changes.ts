// Reads the metadata of audit log entries. Pure, so that it can be tested without a browser.

export interface Change {
  name: string
  /** Undefined if the value was not there. */
  before: string | undefined
  after: string | undefined
}

export interface ReadMetadata {
  changes: Change[]
  /** What else the entry says, without the key that made the change. */
  others: [name: string, value: string][]
  keyId: string | undefined
  keyName: string | undefined
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Writes a value of the API: a text as it is, anything else as JSON. */
const written = (value: unknown): string | undefined => (value === undefined || typeof value === 'string' ? value : JSON.stringify(value))

export const readMetadata = ({ before, after, key_id: keyId, key_name: keyName, ...others }: Record<string, unknown>): ReadMetadata => {
  const [old, current] = [isObject(before) ? before : {}, isObject(after) ? after : {}]
  const changes = Object.keys({ ...old, ...current }).map((name) => ({ name, before: written(old[name]), after: written(current[name]) }))
  return {
    changes,
    others: Object.entries(others).map(([name, value]) => [name, written(value) ?? '']),
    keyId: typeof keyId === 'string' ? keyId : undefined,
    keyName: typeof keyName === 'string' ? keyName : undefined,
  }
}
