// The index of a print list, component `descr`: one line a piece of the list, `<offset> <length> <type><parameters>`. A DKEY line defines
// a field of the index (name, and where its value stands), a DAIN line holds the values for a piece of `data`. One character is one byte.

/** A value that a field must contain. */
export interface Condition {
  offset: number
  length: number
  value: string
}

/** A piece of `data`, in bytes. */
export interface Piece {
  offset: number
  length: number
}

// more than a field can reach: three digits of offset, three of length
export const lineMaxCharacters = 4_096

const condition = /^(\d{1,3})\+(\d{1,3})\+([^]+)$/

/** Conditions as they stand in a pattern, decoded each; undefined where one of them is none. */
export const parseConditions = (texts: string[]): Condition[] | undefined => {
  const parsed = texts.map((text) => condition.exec(text))
  return parsed.some((match) => match === null)
    ? undefined
    : parsed.map((match) => ({ offset: Number(match![1]), length: Number(match![2]), value: match![3]! }))
}

const line = /^(\d{1,15}) (\d{1,15}) (DKEY|DAIN)(.*)$/
const field = /^.{40}(.{3})(.{3})/

/** Goes through an index line by line. */
export const createIndexSearch = (conditions: Condition[], { isCaseSensitive }: { isCaseSensitive: boolean }) => {
  // beyond ASCII nobody says what the bytes mean
  const fold = (text: string) => (isCaseSensitive ? text : text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()))
  const wanted = conditions.map((each) => ({ ...each, value: fold(each.value), isDefined: false }))

  return {
    /** The piece of `data` that a line says to meet every condition, if it does. */
    read: (text: string): Piece | undefined => {
      const [, offset, length, type, parameters = ''] = line.exec(text) ?? []
      if (type === 'DKEY') {
        const [, at, long] = (field.exec(parameters) ?? []).map(Number)
        for (const each of wanted) each.isDefined ||= each.offset === at && each.length === long
      }
      if (type !== 'DAIN') return undefined
      const values = fold(parameters)
      return wanted.every((each) => values.slice(each.offset, each.offset + each.length).includes(each.value))
        ? { offset: Number(offset), length: Number(length) }
        : undefined
    },

    /** Whether the lines so far define every field that a condition names. */
    isDefined: (): boolean => wanted.every((each) => each.isDefined),
  }
}
