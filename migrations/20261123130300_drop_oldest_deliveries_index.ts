// The index deliveries_by_destination, which serves the search, finds the oldest deliveries of a destination as well. Every document would
// write to both.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('drop index deliveries_under_way_of_destination')
