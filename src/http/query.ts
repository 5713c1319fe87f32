import { parse, type ParsedUrlQuery } from 'node:querystring'
import type { Context } from 'koa'

/** Parses the query string. The time that Koa's own `context.query` takes grows with the square of the number of parameters. */
export const queryOf = ({ querystring }: Pick<Context, 'querystring'>): ParsedUrlQuery =>
  parse(querystring, undefined, undefined, { maxKeys: 0 })
