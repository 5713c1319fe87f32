import type { Database } from '../db/database.ts'
import type { KeyTerm } from '../domain/document-query.ts'

// The SQL of the terms of a search. Each way to meet a term is a range of an index that begins with the workspace.

type Bindings = Record<string, unknown>

/** Returns a pattern of `like` that texts match which begin with the prefix. */
export const patternOf = (prefix: string) => `${prefix.replaceAll(/[\\%_]/g, '\\$&')}%`

/** Returns the bindings of a term. @param name begins their names, and is a word of its own for each term of a statement */
const bindingsOf = ({ prefix = '', key = '', types = [] }: KeyTerm, name: string): Bindings => ({
  [`${name}_prefix`]: prefix,
  // No key has a character beyond the last of Unicode.
  [`${name}_after`]: `${prefix}\u{10FFFF}`,
  [`${name}_pattern`]: patternOf(prefix),
  [`${name}_ending`]: `%${prefix}`,
  [`${name}_reversed`]: Array.from(prefix).toReversed().join(''),
  [`${name}_key`]: key,
  [`${name}_types`]: types,
})

const typesOf = (name: string): string =>
  `upper(erp_object_type) = any (array(select upper(type) from unnest(:${name}_types::text[]) as type))`

/**
 * Returns a query of the documents that meet a term. A document may be in it more than once.
 * @param columns what is selected: the column `document_id`, or a constant
 * @param isOlder true if only documents before `:cursor` are looked for
 */
export const documentsOfTerm = (
  { prefix, isEnd, key, types }: KeyTerm,
  name: string,
  columns: '1' | 'document_id',
  isOlder: boolean,
): string => {
  const ofKey = (condition: string) => `
  select ${columns}
  from document_keys
  where workspace_id = :workspaceId
    and ${condition}
    ${isOlder ? 'and document_id < :cursor' : ''}`
  const ofType = `
  select ${columns === '1' ? '1' : 'id as document_id'}
  from documents
  where workspace_id = :workspaceId
    and erp_object_type is not null
    and ${typesOf(name)}
    ${isOlder ? 'and id < :cursor' : ''}`
  return [
    ...(prefix === undefined ? [] : [ofKey(`key >= upper(:${name}_prefix) and key < upper(:${name}_after)`)]),
    ...(isEnd ? [ofKey(`key ~ '^[0-9]+$' and reverse(key) >= :${name}_reversed and reverse(key) < :${name}_reversed || ':'`)] : []),
    ...(key === undefined ? [] : [ofKey(`key = upper(:${name}_key)`)]),
    ...(types === undefined ? [] : [ofType]),
  ].join(`
  union all`)
}

/** Returns a condition on a row of `documents` and on `keys`, the array of its keys. */
const meetsTerm = ({ prefix, isEnd, key, types }: KeyTerm, name: string): string => {
  const ofKey = [
    ...(prefix === undefined ? [] : [`key like upper(:${name}_pattern)`]),
    ...(isEnd ? [`(key ~ '^[0-9]+$' and key like :${name}_ending)`] : []),
    ...(key === undefined ? [] : [`key = upper(:${name}_key)`]),
  ]
  const ways = [
    ...(types === undefined ? [] : [typesOf(name)]),
    ...(ofKey.length === 0 ? [] : [`exists (select from unnest(keys) as key where ${ofKey.join(' or ')})`]),
  ]
  return `coalesce(${ways.join(' or ')}, false)`
}

/** A term with the name of its bindings. */
export interface NamedTerm extends KeyTerm {
  name: string
}

/** Gives each different term of alternatives a name. */
export const nameTerms = (alternatives: KeyTerm[][]): NamedTerm[][] => {
  const names = new Map<string, string>()
  return alternatives.map((terms) =>
    terms.map((term) => {
      const key = JSON.stringify(term)
      const name = names.get(key) ?? `term${names.size}`
      names.set(key, name)
      return { ...term, name }
    }),
  )
}

export const bindingsOfAll = (alternatives: NamedTerm[][]): Bindings =>
  Object.assign({}, ...alternatives.flat().map((term) => bindingsOf(term, term.name))) as Bindings

/** Returns a condition on a row of `documents`: all terms of one of the alternatives are met. */
export const meetsAlternatives = (alternatives: NamedTerm[][]): string => {
  if (alternatives.length === 0) return 'false'
  const conditions = alternatives.map((terms) => terms.map((term) => meetsTerm(term, term.name)).join(' and '))
  return `exists (
        select
        from (
          select array(select key from document_keys where document_id = documents.id) as keys
        ) as of_document
        where (${conditions.join(') or (')})
      )`
}

/**
 * Counts the documents of each term, up to a limit.
 * @returns the number by the name of the term
 */
export const countTerms = async (
  db: Database,
  workspaceId: string,
  alternatives: NamedTerm[][],
  limit: number,
): Promise<Map<string, number>> => {
  const terms = [...new Map(alternatives.flat().map((term) => [term.name, term])).values()]
  if (terms.length === 0) return new Map()
  const counts = terms.map(
    (term) => `
    select '${term.name}' as name, (select count(*) from (${documentsOfTerm(term, term.name, '1', false)} limit :limit) as found) as count`,
  )
  const { rows } = await db.raw<{ rows: { name: string; count: number }[] }>(counts.join('\n    union all'), {
    ...bindingsOfAll(alternatives),
    workspaceId,
    limit,
  })
  return new Map(rows.map(({ name, count }) => [name, count]))
}
