// Hostile values of about one mebibyte each: the largest body of the management API, the bridge and the capture.
const largeCharacters = 1024 * 1024 - 4_096

/** Repeats a text up to this many characters of JSON. */
export const repeated = (unit: string, characters = largeCharacters): string =>
  unit.repeat(Math.floor(characters / (JSON.stringify(unit).length - 2)))

/** Units of texts on which a regular expression or a parser takes long, if its time is not proportional to the text. */
export const hostileUnits = ['a', ' ', '1.1.1.1/8,', '-----BEGIN CERTIFICATE-----\n']

/** JSON texts of many, deeply nested or laboriously written values. */
export const hostileJson: Record<string, string> = {
  'many numbers': `[${repeated('0,')}0]`,
  'many texts': `[${'"a",'.repeat(250_000)}"a"]`,
  'many objects': `[${'{"a":0},'.repeat(125_000)}0]`,
  'many keys': `{${Array.from({ length: 90_000 }, (_, index) => `"k${index}":0`).join(',')}}`,
  'many secrets': `{${Array.from({ length: 60_000 }, (_, index) => `"token":${index % 10}`).join(',')}}`,
  'JSON in texts': JSON.stringify(Array.from({ length: 40_000 }, () => '{"token":"a"}')),
  'deep arrays': '['.repeat(500_000) + ']'.repeat(500_000),
  'deep objects': `${'{"a":'.repeat(100_000)}0${'}'.repeat(100_000)}`,
  'escape sequences': `["${'\\u0061'.repeat(170_000)}"]`,
  'an open text': `["${'\\\\'.repeat(500_000)}`,
}
