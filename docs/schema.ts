import type { Database } from '../src/db/database.ts'

interface Table {
  name: string
  comment: string | null
  partitionKey: string | null
  /** Storage parameters, as `fillfactor=50`. */
  options: string[] | null
}

interface Column {
  table: string
  name: string
  type: string
  collation: string | null
  /** A default, an identity or a generated value, as it follows the type. */
  value: string | null
  isRequired: boolean
  /** Differs from the storage of the type: `alter table` states it, as PostgreSQL 14 and 15 do not accept it in `create table`. */
  storage: string | null
  comment: string | null
}

interface Constraint {
  table: string
  name: string
  kind: 'c' | 'f' | 'p' | 'u' | 'x'
  columns: string[]
  definition: string
  comment: string | null
  /** The comment of the index that implements the constraint. */
  indexComment: string | null
}

interface Definition {
  name: string
  /** Of an index: its table. */
  table: string
  definition: string
  comment: string | null
}

interface Routine {
  name: string
  parameters: string
  result: string
  language: string
  /** Differ from the defaults, in lower case. */
  attributes: string[]
  body: string
  comment: string | null
}

// Every query reads the system catalogs: pg_dump is another program to install, and its text changes with its version.
const tables = `
  select class.relname as name, obj_description(class.oid, 'pg_class') as comment, pg_get_partkeydef(class.oid) as "partitionKey",
    reloptions as options
  from pg_class class
  where class.relnamespace = current_schema()::regnamespace
    and class.relkind in ('r', 'p')
    and not class.relispartition
    and class.relname not like 'knex\\_%'
  order by class.oid
`

const columns = `
  select
    class.relname as table,
    attname as name,
    format_type(atttypid, atttypmod) as type,
    (select collname from pg_collation where oid = attcollation and attcollation <> typcollation) as collation,
    case
      when attidentity <> '' then 'generated ' || case attidentity when 'a' then 'always' else 'by default' end || ' as identity'
      when attgenerated <> '' then 'generated always as (' || pg_get_expr(adbin, adrelid, true) || ') stored'
      else 'default ' || pg_get_expr(adbin, adrelid, true)
    end as value,
    attnotnull as "isRequired",
    case when attstorage <> typstorage then case attstorage when 'e' then 'external' when 'm' then 'main' when 'x' then 'extended' else 'plain' end end
      as storage,
    col_description(attrelid, attnum) as comment
  from pg_attribute
  join pg_class class on class.oid = attrelid
  join pg_type on pg_type.oid = atttypid
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where class.relnamespace = current_schema()::regnamespace
    and attnum > 0
    and not attisdropped
  order by attrelid, attnum
`

// Not null constraints have rows of their own from PostgreSQL 18 on: the columns state them.
const constraints = `
  select
    class.relname as table,
    conname as name,
    contype as kind,
    array(
      select attname::text
      from unnest(conkey) with ordinality as key (attnum, position)
      join pg_attribute on attrelid = conrelid and pg_attribute.attnum = key.attnum
      order by position
    ) as columns,
    pg_get_constraintdef(pg_constraint.oid, true) as definition,
    obj_description(pg_constraint.oid, 'pg_constraint') as comment,
    case when contype in ('p', 'u', 'x') then obj_description(conindid, 'pg_class') end as "indexComment"
  from pg_constraint
  join pg_class class on class.oid = conrelid
  where connamespace = current_schema()::regnamespace
    and contype in ('c', 'f', 'p', 'u', 'x')
  order by array_position(array['p', 'u', 'x', 'c', 'f'], contype::text), conname
`

const indexes = `
  select
    index.relname as name,
    class.relname as table,
    pg_get_indexdef(indexrelid, 0, true) as definition,
    obj_description(indexrelid, 'pg_class') as comment
  from pg_index
  join pg_class class on class.oid = indrelid
  join pg_class index on index.oid = indexrelid
  where class.relnamespace = current_schema()::regnamespace
    and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
  order by index.relname
`

const routines = `
  select
    proname as name,
    pg_get_function_arguments(pg_proc.oid) as parameters,
    pg_get_function_result(pg_proc.oid) as result,
    lanname as language,
    array_remove(
      array[
        case provolatile when 'i' then 'immutable' when 's' then 'stable' end,
        case when proisstrict then 'strict' end,
        case when prosecdef then 'security definer' end,
        case proparallel when 's' then 'parallel safe' when 'r' then 'parallel restricted' end,
        case when procost <> case when lanname in ('c', 'internal') then 1 else 100 end then 'cost ' || procost end,
        case when proretset and prorows <> 1000 then 'rows ' || prorows end
      ] || array(select 'set ' || replace(setting, '=', ' to ') from unnest(proconfig) as setting),
      null
    ) as attributes,
    prosrc as body,
    obj_description(pg_proc.oid, 'pg_proc') as comment
  from pg_proc
  join pg_language on pg_language.oid = prolang
  where pronamespace = current_schema()::regnamespace
  order by pg_proc.oid
`

const triggers = `
  select
    tgname as name,
    class.relname as table,
    pg_get_triggerdef(pg_trigger.oid, true) as definition,
    obj_description(pg_trigger.oid, 'pg_trigger') as comment
  from pg_trigger
  join pg_class class on class.oid = tgrelid
  where class.relnamespace = current_schema()::regnamespace
    and not tgisinternal
    and not class.relispartition
  order by pg_trigger.oid
`

const unknown = `
  select relname as name
  from pg_class
  where relnamespace = current_schema()::regnamespace
    and relkind not in ('r', 'p', 'i', 'I', 't')
    and relname not like 'knex\\_%'
    -- The sequence of an identity column, which the column states.
    and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'i')
  union all
  select typname
  from pg_type
  where typnamespace = current_schema()::regnamespace
    and typtype in ('d', 'e', 'r')
`

const literal = /('(?:[^']|'')*'|"[^"]*")/

/** Rewrites what PostgreSQL prints as one writes it by hand: lower case, without casts of literals, `in` for a list of values. */
const plain = (sql: string): string =>
  sql
    .replaceAll(/('(?:[^']|'')*')::(text|jsonb)\b(?!\[)/g, '$1')
    .split(literal)
    .map((part, index) => (index % 2 === 1 ? part : part.toLowerCase()))
    .join('')
    .replaceAll('timestamp with time zone', 'timestamptz')
    .replaceAll(/= any \(array\[(.*?)\]\)/g, 'in ($1)')
    .replaceAll(/\b(references|on) (only )?(\w+)( using btree ?|(?=\())/g, '$1 $3 ')

const lineLength = 134

/** Writes a comment as literals that PostgreSQL joins, a line each. */
const commentOn = (object: string, comment: string | null): string => {
  if (comment === null) return ''
  const lines = ['']
  for (const word of comment.replaceAll("'", "''").split(/(?<= )/)) {
    if (lines.at(-1)!.length + word.length > lineLength) lines.push('')
    lines[lines.length - 1] += word
  }
  return `comment on ${object} is\n${lines.map((line) => `  '${line}'`).join('\n')};\n`
}

const keywords = { p: 'primary key', u: 'unique', c: 'check', f: 'references', x: 'exclude' }
const suffixes = { p: 'pkey', u: 'key', c: 'check', f: 'fkey', x: 'excl' }

/** The name that PostgreSQL chooses for a constraint that is given none. */
const defaultName = ({ table, kind, columns: on }: Constraint) => [table, ...(kind === 'p' ? [] : on), suffixes[kind]].join('_')

const belongsToOneColumn = (constraint: Constraint) => constraint.columns.length === 1 && constraint.name === defaultName(constraint)

const columnText = (column: Column, own: Constraint[]): string => {
  const isKey = own.some(({ kind }) => kind === 'p')
  const text = [
    `${column.name} ${plain(column.type)}`,
    column.collation && `collate "${column.collation}"`,
    column.isRequired && !isKey && 'not null',
    column.value && plain(column.value),
    ...own.map(({ kind, definition }) => (kind === 'c' || kind === 'x' ? plain(definition) : foreignOrKey(kind, definition))),
  ]
  return `  ${text.filter(Boolean).join(' ')}`
}

const foreignOrKey = (kind: 'f' | 'p' | 'u', definition: string) =>
  kind === 'f' ? plain(definition).replace(/^foreign key \(\w+\) /, '') : keywords[kind]

const constraintText = (constraint: Constraint): string => {
  const name = constraint.name === defaultName(constraint) ? '' : `constraint ${constraint.name} `
  return `  ${name}${plain(constraint.definition)}`
}

const routineText = ({ name, parameters, result, language, attributes, body, comment }: Routine): string =>
  `create function ${name}(${parameters}) returns ${[plain(result), `language ${language}`, ...attributes].join(' ')} as $$${body}$$;\n` +
  commentOn(`function ${name}`, comment)

const triggerText = ({ name, table, definition, comment }: Definition): string =>
  plain(definition).replaceAll(/ (?=(before|after|instead of|referencing|for each|when|execute function) )/g, '\n  ') +
  `;\n${commentOn(`trigger ${name} on ${table}`, comment)}`

const header = `-- The schema of the database after all migrations, for reading. Generated by npm run docs: to change the schema, add a migration
-- (migrations/). Left out: the partitions, which depend on the date, and the bookkeeping of the migrations.
`

/**
 * Returns the schema of a migrated database as SQL that makes the same schema in an empty database. The text is the same for every
 * version of PostgreSQL that is supported.
 * @throws Error if the schema has objects of a kind that this function does not write
 */
export const schemaSql = async (db: Database): Promise<string> => {
  const all = async <Row>(query: string) => (await db.raw<{ rows: Row[] }>(query)).rows
  const strangers = await all<{ name: string }>(unknown)
  if (strangers.length > 0)
    throw new Error(`docs/schema.ts does not write objects of this kind yet: ${strangers.map(({ name }) => name).join(', ')}`)
  const [allColumns, allConstraints, allIndexes] = [
    await all<Column>(columns),
    await all<Constraint>(constraints),
    await all<Definition>(indexes),
  ]

  const tableText = ({ name, comment, partitionKey, options }: Table): string => {
    const of = <Row extends { table: string }>(rows: Row[]) => rows.filter(({ table }) => table === name)
    const apart = of(allConstraints).filter((constraint) => !belongsToOneColumn(constraint))
    const lines = [
      ...of(allColumns).map((column) =>
        columnText(
          column,
          of(allConstraints).filter((constraint) => belongsToOneColumn(constraint) && constraint.columns[0] === column.name),
        ),
      ),
      ...apart.map(constraintText),
    ]
    const storage = of(allColumns)
      .filter((column) => column.storage !== null)
      .map((column) => `alter table ${name} alter column ${column.name} set storage ${column.storage};\n`)
    const comments = [
      commentOn(`table ${name}`, comment),
      ...of(allColumns).map((column) => commentOn(`column ${name}.${column.name}`, column.comment)),
      ...of(allConstraints).map((constraint) => commentOn(`constraint ${constraint.name} on ${name}`, constraint.comment)),
      ...of(allConstraints).map((constraint) => commentOn(`index ${constraint.name}`, constraint.indexComment)),
    ]
    const ownIndexes = of(allIndexes).map(
      (index) => `\n${plain(index.definition).replace(' where ', '\nwhere ')};\n${commentOn(`index ${index.name}`, index.comment)}`,
    )
    const partition = partitionKey === null ? '' : ` partition by ${plain(partitionKey)}`
    const parameters = options === null ? '' : ` with (${options.join(', ')})`
    return [`create table ${name} (\n${lines.join(',\n')}\n)${partition}${parameters};\n`, ...storage, ...comments, ...ownIndexes].join('')
  }

  return [
    header,
    ...(await all<Table>(tables)).map(tableText),
    ...(await all<Routine>(routines)).map(routineText),
    ...(await all<Definition>(triggers)).map(triggerText),
  ].join('\n')
}
