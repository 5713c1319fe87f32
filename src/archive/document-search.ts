import type { z } from 'zod'
import { timeOfId } from '../base/ids.ts'
import { encodeHeader } from '../content-server/encoding.ts'
import type { Database } from '../db/database.ts'
import { settledTime, type CursorRequest } from '../db/page.ts'
import type { CamelCased } from '../domain/casing.ts'
import { deliveryStatuses, noErrorCode } from '../domain/delivery-states.ts'
import { readQuery } from '../domain/document-query.ts'
import type { listConditions, searchConditions } from './document-fields.ts'
import { bindingsOfAll, countTerms, documentsOfTerm, meetsAlternatives, nameTerms, patternOf, type NamedTerm } from './document-keys.ts'
import { documentsOnHold, isOnHold } from './legal-holds.ts'

/** Conditions of a search. Every one that is given must hold. */
export type DocumentSearch = Omit<CamelCased<z.output<z.ZodObject<typeof listConditions & typeof searchConditions>>>, 'include'>

// A request reads at most 5,000 candidates, in windows of growing size, until its page is full. If an index serves all conditions, the
// first one suffices: with a first window of 500, a search among a million documents took twice as long as among a thousand.
const windowsOf = (perPage: number) => [2 * perPage, 500, 4_500 - 2 * perPage]
const commonMin = 5_000
// A delivery that has arrived has no error.
const unsuccessful = deliveryStatuses.filter((status) => status !== 'delivered')

/** Facts that a search needs. */
interface Lookup {
  workspaceId: string
  search: DocumentSearch
  /** The destinations that the conditions name; undefined if they name none. */
  destinations: string[] | undefined
  /** The ways to meet `q`, if it is given. */
  alternatives?: NamedTerm[][]
  /** Terms of which each document that is found meets one; undefined if many documents do. All documents by their time are then read instead. */
  leads?: NamedTerm[]
}

/** Where a window of candidates begins. */
type Cursor = Omit<CursorRequest, 'perPage'>

/** A window of candidates that was read. */
interface Candidates {
  count: number
  /** Null if there are none. */
  last: string | null
  /** Ids of those that meet the conditions, in the order of the list. */
  matches: string[]
}

/** A query of the ids of candidates, in the order of the list. Names of values have the form `:name`. */
interface Source {
  sql: string
  /** Whether it has all columns of the documents, which are then not looked up again: 5,000 candidates take a quarter of the time. */
  hasDocuments?: true
  order: 'id desc' | 'received_at desc, id desc' | 'received_at, id'
}

/** Returns the values that the SQL of a search names. */
const valuesOf = ({ workspaceId, search, destinations, alternatives = [], leads = [] }: Lookup) => {
  const { docId, docIdPrefix, erpObjectId, fileName, field, deliveryStatus, errorCode } = search
  const exact = docId ?? erpObjectId ?? fileName ?? (field && `${field.name}:${field.value}`)
  return {
    ...search,
    // It is kept with one character for each byte.
    contentTypes: search.contentType === undefined ? [] : [search.contentType, encodeHeader(search.contentType)],
    field: undefined,
    fieldName: field?.name,
    fieldValue: field?.value,
    workspaceId,
    destinations: destinations ?? [],
    statuses: deliveryStatus !== undefined ? [deliveryStatus] : errorCode !== undefined ? unsuccessful : deliveryStatuses,
    key: exact,
    docIdPattern: docIdPrefix && patternOf(docIdPrefix),
    ...bindingsOfAll([...alternatives, leads]),
  }
}

/** Returns the conditions, in SQL that names a document by the columns of `documents`. */
const conditionsOf = ({ search, destinations, alternatives = [] }: Lookup): string[] => {
  const conditions: [keyof DocumentSearch, string][] = [
    ['q', meetsAlternatives(alternatives)],
    [
      'field',
      `exists (
        select
        from document_enrichments
        where document_id = documents.id
          and upper(fields ->> :fieldName) = upper(:fieldValue)
      )`,
    ],
    ['docId', 'doc_id = :docId'],
    ['docIdPrefix', 'doc_id like :docIdPattern'],
    ['erpObjectType', 'erp_object_type = :erpObjectType'],
    ['erpObjectId', 'erp_object_id = :erpObjectId'],
    ['arObject', 'ar_object = :arObject'],
    ['contentType', 'content_type = any (:contentTypes::text[])'],
    ['fileName', 'upper(file_name) = upper(:fileName)'],
    ['sizeMin', 'size_bytes >= :sizeMin'],
    ['sizeMax', 'size_bytes <= :sizeMax'],
    ['repoId', 'repo_id = :repoId'],
    ['status', 'documents.status = :status'],
    ['acknowledged', `acknowledged_at is ${search.acknowledged ? 'not null' : 'null'}`],
    ['legalHold', `${search.legalHold ? '' : 'not '}${isOnHold('documents')}`],
    ['dateFrom', 'received_at >= :dateFrom'],
    ['dateTo', 'received_at <= :dateTo'],
  ]
  const ofDelivery = ['document_id = documents.id']
  if (destinations) ofDelivery.push('destination_id = any (:destinations::text[])')
  if (search.connectionId !== undefined) ofDelivery.push('connection_id = :connectionId')
  if (search.deliveryStatus !== undefined) ofDelivery.push('deliveries.status = :deliveryStatus')
  if (search.errorCode !== undefined) ofDelivery.push(`last_error is not null and coalesce(last_error_code, '${noErrorCode}') = :errorCode`)
  return [
    ...conditions.filter(([name]) => search[name] !== undefined).map(([, sql]) => sql),
    ...(ofDelivery.length > 1 ? [`exists (select from deliveries where ${ofDelivery.join(' and ')})`] : []),
  ]
}

/** Conditions of the list of documents, which has an index for each combination of them. */
const listed = ['repoId', 'status', 'acknowledged', 'dateFrom', 'dateTo'] as const satisfies (keyof DocumentSearch)[]

const byReceipt = ({ workspaceId, search }: Lookup, range: string[], order: Source['order']): Source => {
  const indexed = Object.fromEntries(listed.map((name) => [name, search[name]]))
  const conditions = conditionsOf({ workspaceId, search: indexed, destinations: undefined })
  const sql = `
    select *
    from documents
    where ${['workspace_id = :workspaceId', ...conditions, ...range].join(' and ')}
    order by ${order}`
  return { sql, hasDocuments: true, order }
}

/**
 * Chooses the query of the candidates: the most selective condition that an index serves.
 */
const sourceOf = (lookup: Lookup, { before, after }: Cursor): Source => {
  const { search, destinations, leads } = lookup
  // A reader that follows the list is near its end as a rule, where few documents are left to read.
  if (after !== undefined) {
    return byReceipt(lookup, ['(received_at, id) > (:receivedAt, :cursor)', 'received_at < :settledTime'], 'received_at, id')
  }
  const { docId, erpObjectId, fileName, field, connectionId, deliveryStatus, errorCode } = search
  const older = before === undefined ? '' : 'and document_id < :cursor'
  if ([docId, erpObjectId, fileName, field].some((exact) => exact !== undefined)) {
    const sql = `select document_id as id from document_keys where workspace_id = :workspaceId and key = upper(:key) ${older} order by document_id desc`
    return { sql, order: 'id desc' }
  }
  if (leads) {
    const found = leads.map((term) => documentsOfTerm(term, term.name, 'document_id', before !== undefined))
    const sql = `select distinct document_id as id from (${found.join(' union all ')}) as found order by id desc`
    return { sql, order: 'id desc' }
  }
  // Deliveries of another status are few, and have ranges of their own in the index below.
  const isOfConnection = deliveryStatus === undefined || deliveryStatus === 'delivered' || deliveryStatus === 'held'
  if (connectionId !== undefined && isOfConnection && errorCode === undefined) {
    const sql = `
      select distinct document_id as id
      from deliveries
      where connection_id = :connectionId and workspace_id = :workspaceId ${deliveryStatus === 'held' ? `and status = 'held'` : ''} ${older}
      order by id desc`
    return { sql, order: 'id desc' }
  }
  if (destinations || deliveryStatus !== undefined || errorCode !== undefined) {
    // Each pair of a destination and a status is one range of the index.
    const sql = `
      select distinct document_id as id
      from ${destinations ? 'unnest(:destinations::text[]) as destination (id)' : '(select id from destinations where workspace_id = :workspaceId) as destination'}
      cross join unnest(:statuses::text[]) as chosen (status)
      cross join lateral (
        select document_id
        from deliveries
        where destination_id = destination.id and status = chosen.status ${older}
          ${errorCode === undefined ? '' : `and last_error is not null and coalesce(last_error_code, '${noErrorCode}') = :errorCode`}
        order by document_id desc
        limit :window
      ) as found
      order by id desc`
    return { sql, order: 'id desc' }
  }
  const order = 'received_at desc, id desc'
  const range = before === undefined ? [] : ['(received_at, id) < (:receivedAt, :cursor)']
  if (search.legalHold) {
    const found = documentsOnHold('held.workspace_id = :workspaceId', range[0], `order by ${order} limit :window`)
    return { sql: `select id from (select distinct id, received_at from (${found}) as found) as document order by ${order}`, order }
  }
  return byReceipt(lookup, range, order)
}

/**
 * Finds the documents that meet the conditions, newest first, or oldest first after a document. One request reads a limited number of
 * candidates, so a page may have fewer rows than were asked for, even none, although further documents remain: the cursor tells.
 */
export const createDocumentSearch = (db: Database) => {
  /** Reads the text of a search, and finds the rarest term of each of its readings. Readings that no document meets are left out. */
  const readTerms = async (workspaceId: string, { q, docIdPrefix }: DocumentSearch): Promise<Pick<Lookup, 'alternatives' | 'leads'>> => {
    if (q === undefined && docIdPrefix === undefined) return {}
    const readings = q === undefined ? [] : readQuery(q)
    const named = nameTerms([...readings, ...(docIdPrefix === undefined ? [] : [[{ prefix: docIdPrefix }]])])
    const counts = await countTerms(db, workspaceId, named, commonMin)
    const countOf = ({ name }: NamedTerm) => counts.get(name)!
    const alternatives = named.slice(0, readings.length).filter((terms) => terms.every((term) => countOf(term) > 0))
    const ofDocId = named.slice(readings.length)
    const rarest = [...(ofDocId.length > 0 ? ofDocId : alternatives)].map(
      (terms) => terms.toSorted((one, other) => countOf(one) - countOf(other))[0]!,
    )
    return { alternatives, ...(rarest.every((term) => countOf(term) < commonMin) && { leads: rarest }) }
  }

  const findDestinations = async (workspaceId: string, { destinationId, connectorType }: DocumentSearch): Promise<string[] | undefined> => {
    if (destinationId === undefined && connectorType === undefined) return undefined
    const query = db('destinations').where({ workspace_id: workspaceId }).select<{ id: string }[]>('id')
    if (destinationId !== undefined) query.where({ id: destinationId })
    if (connectorType !== undefined) query.where({ connector_type: connectorType })
    return (await query).map(({ id }) => id)
  }

  const receiptOf = async (workspaceId: string, id: string): Promise<Date> => {
    const found = await db('documents')
      .where({ workspace_id: workspaceId, id })
      .first<{ receivedAt: Date } | undefined>('received_at as receivedAt')
    return found?.receivedAt ?? timeOfId(id)
  }

  /** Reads candidates. Only the ids of those that meet the conditions are returned: 5,000 rows would take longer than to check them. */
  const readWindow = async (lookup: Lookup, position: Cursor, window: number): Promise<Candidates> => {
    const { sql, hasDocuments, order } = sourceOf(lookup, position)
    const cursor = position.after ?? position.before
    const { rows } = await db.raw<{ rows: Candidates[] }>(
      `
      select count(*), (array_agg(id))[count(*)] as last, coalesce(array_agg(id) filter (where is_match), '{}') as matches
      from (
        select id, is_match
        from (
          ${sql}
          limit :window
        ) as ${hasDocuments ? 'documents' : 'candidates'}
        cross join lateral (
          select ${hasDocuments ? '' : 'received_at,'} ${['true', ...conditionsOf(lookup)].join(' and ')} as is_match
          ${hasDocuments ? '' : 'from documents where documents.id = candidates.id'}
          -- Without it, the planner could read all deliveries or keys to check the conditions.
          limit 1
        ) as document
        order by ${order}
      ) as checked
      `,
      {
        ...valuesOf(lookup),
        window,
        ...(cursor !== undefined && { cursor, receivedAt: await receiptOf(lookup.workspaceId, cursor), settledTime: settledTime() }),
      },
    )
    return rows[0]!
  }

  return async (
    workspaceId: string,
    { before, after, perPage, ...search }: DocumentSearch & CursorRequest,
  ): Promise<{ ids: string[]; nextCursor: string | null }> => {
    const lookup = {
      workspaceId,
      search,
      destinations: await findDestinations(workspaceId, search),
      ...(await readTerms(workspaceId, search)),
    }
    if (search.q !== undefined && lookup.alternatives!.length === 0) return { ids: [], nextCursor: null }
    const ids: string[] = []
    let position: Cursor = { before, after }
    for (const window of windowsOf(perPage)) {
      const { count, last, matches } = await readWindow(lookup, position, window)
      ids.push(...matches)
      if (ids.length > perPage) return { ids: ids.slice(0, perPage), nextCursor: ids[perPage - 1]! }
      if (count < window) return { ids, nextCursor: null }
      position = after === undefined ? { before: last! } : { after: last! }
    }
    return { ids, nextCursor: (position.after ?? position.before)! }
  }
}
