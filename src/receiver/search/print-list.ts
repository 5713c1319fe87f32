// The index of a print list (component `descr`) has one line per entry: `<offset> <length> <type><parameters>`. A DKEY line defines a
// field of the index (its name and the position of its value). A DAIN line holds the field values of one range of `data`. One character
// is one byte.

/** A value that an index field must contain. */
export interface Condition {
  offset: number
  length: number
  value: string
}

/** A range of the component `data`, in bytes. */
export interface DataRange {
  offset: number
  length: number
}

// A field ends at most at 999 + 999: its offset and its length have three digits each.
export const lineMaxCharacters = 4_096

const condition = /^(\d{1,3})\+(\d{1,3})\+([^]+)$/

/** Parses decoded conditions of a search pattern. @returns undefined if one of them is malformed */
export const parseConditions = (texts: string[]): Condition[] | undefined => {
  const parsed = texts.map((text) => condition.exec(text))
  return parsed.some((match) => match === null)
    ? undefined
    : parsed.map((match) => ({ offset: Number(match![1]), length: Number(match![2]), value: match![3]! }))
}

const line = /^(\d{1,15}) (\d{1,15}) (DKEY|DAIN)(.*)$/
const field = /^.{40}(.{3})(.{3})/

/** Searches an index line by line. @param defined for each condition, if an earlier line has defined its field */
export const createIndexSearch = (
  conditions: Condition[],
  { isCaseSensitive, defined }: { isCaseSensitive: boolean; defined: boolean[] },
) => {
  // Only ASCII letters are folded: the encoding of other bytes is unknown.
  const fold = (text: string) => (isCaseSensitive ? text : text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()))
  const wanted = conditions.map((each, index) => ({ ...each, value: fold(each.value), isDefined: defined[index]! }))

  return {
    /** Reads one line. @returns the range of `data` that the line describes, if its values meet every condition */
    read: (text: string): DataRange | undefined => {
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

    /** Returns for each condition, if the lines read so far define its field. */
    defined: (): boolean[] => wanted.map((each) => each.isDefined),
  }
}
