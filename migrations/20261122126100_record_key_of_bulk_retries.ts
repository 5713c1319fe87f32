// Every audit entry names the API key that caused the change. A bulk retry writes its entries later, so it keeps the key of its start.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table bulk_retries add column key_id text collate "C"')
