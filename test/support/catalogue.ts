import type { Database } from '../../src/db/database.ts'

const isCompared = (relation: string) => `
  ${relation}.relnamespace = current_schema()::regnamespace
  and not ${relation}.relispartition
  and ${relation}.relname not like 'knex\\_%'
`

// Each query returns the name of an object and everything that PostgreSQL knows about it, without object identifiers.
const queries = {
  relations: `
    select
      relname as name, relkind as kind, relpersistence as persistence, amname as "accessMethod", reloptions as options, relacl as rights,
      relreplident as "replicaIdentity", relrowsecurity as "hasRowSecurity", relforcerowsecurity as "forcesRowSecurity",
      reltablespace <> 0 as "hasTablespace", pg_get_partkeydef(pg_class.oid) as "partitionKey",
      case when relkind in ('v', 'm') then pg_get_viewdef(pg_class.oid) end as view,
      to_jsonb(pg_sequence) - 'seqrelid' as sequence,
      obj_description(pg_class.oid, 'pg_class') as comment
    from pg_class
    left join pg_am on pg_am.oid = relam
    left join pg_sequence on seqrelid = pg_class.oid
    where ${isCompared('pg_class')}
      and relkind <> 't'
  `,
  columns: `
    select
      relname || '.' || attname as name,
      row_number() over (partition by attrelid order by attnum) as position,
      format_type(atttypid, atttypmod) as type, attcollation::regcollation as collation, attnotnull as "isRequired",
      pg_get_expr(adbin, adrelid) as value, attidentity as identity, attgenerated as generated,
      attstorage as storage, attcompression as compression, nullif(attstattarget, -1) as "statisticsTarget",
      -- PostgreSQL 15.20 keeps a number of its own there, another one in each database.
      (select array_agg(option) from unnest(attoptions) as option where option not like 'pg_attver=%') as options,
      attacl as rights, col_description(attrelid, attnum) as comment
    from pg_attribute
    join pg_class on pg_class.oid = attrelid
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where ${isCompared('pg_class')}
      and relkind <> 't'
      and attnum > 0
      and not attisdropped
  `,
  constraints: `
    select
      coalesce(relname, typname) || '.' || conname as name, contype as kind, pg_get_constraintdef(pg_constraint.oid) as definition,
      obj_description(pg_constraint.oid, 'pg_constraint') as comment
    from pg_constraint
    left join pg_class on pg_class.oid = conrelid
    left join pg_type on pg_type.oid = contypid
    where connamespace = current_schema()::regnamespace
      and (conrelid = 0 or ${isCompared('pg_class')})
  `,
  indexes: `
    select
      index.relname as name, pg_get_indexdef(indexrelid) as definition, indisvalid as "isValid", indisclustered as "isClustered",
      indisreplident as "isReplicaIdentity"
    from pg_index
    join pg_class as index on index.oid = indexrelid
    join pg_class as indexed on indexed.oid = indrelid
    where ${isCompared('indexed')}
  `,
  triggers: `
    select
      relname || '.' || tgname as name, pg_get_triggerdef(pg_trigger.oid) as definition, tgenabled as enabled,
      obj_description(pg_trigger.oid, 'pg_trigger') as comment
    from pg_trigger
    join pg_class on pg_class.oid = tgrelid
    where ${isCompared('pg_class')}
      and not tgisinternal
  `,
  functions: `
    select
      proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')' as name, prokind as kind,
      case when prokind in ('f', 'p') then pg_get_functiondef(pg_proc.oid) end as definition, provolatile as volatility, proisstrict as "isStrict",
      prosecdef as "hasRightsOfOwner", proleakproof as "isLeakproof", proparallel as parallel, procost as cost, prorows as rows,
      prosupport as support, proconfig as settings, proacl as rights, obj_description(pg_proc.oid, 'pg_proc') as comment
    from pg_proc
    where pronamespace = current_schema()::regnamespace
  `,
  statistics: `
    select stxname as name, pg_get_statisticsobjdef(oid) as definition, obj_description(oid, 'pg_statistic_ext') as comment
    from pg_statistic_ext
    where stxnamespace = current_schema()::regnamespace
  `,
  types: `
    select
      typname as name, typtype as kind, typnotnull as "isRequired", typdefault as value, format_type(typbasetype, typtypmod) as base,
      array(select enumlabel from pg_enum where enumtypid = pg_type.oid order by enumsortorder) as labels,
      obj_description(oid, 'pg_type') as comment
    from pg_type
    where typnamespace = current_schema()::regnamespace
      and typtype in ('d', 'e', 'r')
  `,
  policies: `
    select relname || '.' || polname as name, to_jsonb(pg_policy) - array['oid', 'polrelid', 'polroles'] as definition
    from pg_policy
    join pg_class on pg_class.oid = polrelid
    where relnamespace = current_schema()::regnamespace
  `,
  rules: `
    select relname || '.' || rulename as name, pg_get_ruledef(pg_rewrite.oid) as definition
    from pg_rewrite
    join pg_class on pg_class.oid = ev_class
    where relnamespace = current_schema()::regnamespace
  `,
}

type Catalogue = Record<keyof typeof queries, Record<string, Record<string, unknown>>>

/**
 * Returns what the system catalogs of PostgreSQL say about every object of a schema, by kind and name. Left out: partitions, which depend
 * on the date, and the tables of knex.
 */
export const catalogueOf = async (db: Database): Promise<Catalogue> => {
  const kinds = Object.entries(queries).map(async ([kind, query]) => {
    const { rows } = await db.raw<{ rows: { name: string }[] }>(query)
    return [kind, Object.fromEntries(rows.map(({ name, ...rest }) => [name, rest]))] as const
  })
  return Object.fromEntries(await Promise.all(kinds)) as Catalogue
}
