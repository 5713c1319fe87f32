import type { Knex } from 'knex'

export interface PageRequest {
  page: number
  perPage: number
}

export interface Page<Item> {
  items: Item[]
  total: number
}

/** One page of a query that has its conditions and its order but no columns yet, and how many rows meet the same conditions. */
export const pageOf = async <Item>(
  query: Knex.QueryBuilder,
  columns: readonly unknown[],
  { page, perPage }: PageRequest,
): Promise<Page<Item>> => {
  const [items, counted] = await Promise.all([
    query
      .clone()
      .select(columns as Knex.ColumnDescriptor<object, unknown>[])
      .limit(perPage)
      .offset((page - 1) * perPage) as PromiseLike<Item[]>,
    query.clone().clearOrder().count({ total: '*' }).first() as PromiseLike<{ total: number }>,
  ])
  return { items, total: counted.total }
}
