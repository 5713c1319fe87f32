// Placeholders in the calls of an enrichment: a name in braces, with an optional part and filters, `{erp_object_id[4:14]|trim_zeros}`.

/** Placeholders that every call of an enrichment may contain, beside the fields of earlier steps. */
export const documentPlaceholders = [
  'doc_id',
  'repo_id',
  'comp_id',
  'received_date',
  'erp_object_type',
  'erp_object_id',
  'ar_object',
] as const

/** Fields with these names are the business object of the document. */
export const linkFields = ['erp_object_type', 'erp_object_id', 'ar_object'] as const
export type LinkField = (typeof linkFields)[number]

export const isLinkField = (name: string): name is LinkField => linkFields.some((each) => each === name)

/** Returns the value that people have given a name. Every object has a `constructor` of its own, which is also a name of a field. */
export const valueIn = <Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined

const inBraces = /\{([^{}]*)\}/g
const placeholder = /^([a-z][a-z0-9_]*)(?:\[(\d{0,4}):(\d{0,4})\])?((?:\|[a-z_0-9]+)*)$/
const zeros = /^zeros_([1-9]|[1-3][0-9]|40)$/
const filtersMax = 4

interface Placeholder {
  name: string
  start: number
  end: number | undefined
  filters: string[]
}

const read = (text: string): Placeholder | undefined => {
  const [, name, start = '', end = '', filters = ''] = placeholder.exec(text) ?? []
  if (name === undefined) return undefined
  return { name, start: Number(start), end: end === '' ? undefined : Number(end), filters: filters.split('|').slice(1) }
}

const filters: Record<string, (value: string) => string> = {
  upper: (value) => value.toUpperCase(),
  lower: (value) => value.toLowerCase(),
  trim: (value) => value.trim(),
  trim_zeros: (value) => value.replace(/^0+(?=.)/, ''),
  /** `20260302` as `2026-03-02` */
  date: (value) => value.replace(/^(\d{4})(\d{2})(\d{2})$/, '$1-$2-$3'),
  /** `2026-03-02` as `20260302` */
  yyyymmdd: (value) => value.replace(/^(\d{4})-(\d{2})-(\d{2})$/, '$1$2$3'),
}

const filterOf = (name: string): ((value: string) => string) | undefined => {
  const digits = zeros.exec(name)?.[1]
  return digits === undefined ? (Object.hasOwn(filters, name) ? filters[name] : undefined) : (value) => value.padStart(Number(digits), '0')
}

/** Returns why a text of a call is invalid, or undefined. @param known the names that may stand in braces */
export const fieldTemplateIssue = (template: string, known: readonly string[]): string | undefined => {
  for (const [, text] of template.matchAll(inBraces)) {
    const found = read(text!)
    if (!found) return `{${text}} is no placeholder; write a name in braces, for example {erp_object_id} or {erp_object_id[0:4]}`
    if (!known.includes(found.name))
      return `unknown placeholder {${found.name}}; known here: ${known.map((name) => `{${name}}`).join(', ')}`
    if (found.filters.length > filtersMax) return `{${text}} has more than ${filtersMax} filters`
    const unknown = found.filters.find((name) => !filterOf(name))
    if (unknown !== undefined) return `unknown filter ${unknown}; known are ${Object.keys(filters).join(', ')}, and zeros_1 to zeros_40`
  }
  return /[{}]/.test(template.replaceAll(inBraces, '')) ? 'must not contain an unmatched brace' : undefined
}

export const fieldsIn = (template: string): string[] => [...template.matchAll(inBraces)].flatMap(([, text]) => read(text!)?.name ?? [])

/**
 * Replaces each placeholder by its value.
 * @param values must contain every name that the text has
 * @param encode encodes a value for its place, given the text before it
 */
export const fillFields = (
  template: string,
  values: Readonly<Record<string, string>>,
  encode = (value: string, _before: string) => value,
): string =>
  template.replaceAll(inBraces, (whole, text: string, offset: number) => {
    const found = read(text)
    if (!found) return whole
    const characters = Array.from(valueIn(values, found.name) ?? '').slice(found.start, found.end)
    const value = found.filters.reduce((result, name) => filterOf(name)?.(result) ?? result, characters.join(''))
    return encode(value, template.slice(0, offset))
  })
