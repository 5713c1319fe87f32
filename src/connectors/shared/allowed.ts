import type { z } from 'zod'
import { toJSONSchema } from 'zod'
import { grantedTo } from '../../base/grants.ts'
import type { Config } from '../../config/config.ts'
import type { TargetIssue } from '../connector.ts'
import { isBelowRoot } from './below-root.ts'

const rules = {
  RELAY_DIRECTORY_ROOTS: { things: 'directories', demand: 'must be below a directory', allows: isBelowRoot },
  RELAY_TOKEN_FILE_ROOTS: { things: 'directories of tokens', demand: 'must be below a directory', allows: isBelowRoot },
  RELAY_S3_ROLES: {
    things: 'roles',
    demand: 'must be a role',
    allows: (role: string, granted: readonly string[]) => granted.includes(role),
  },
}

type AllowList = keyof typeof rules

/** What the operator allows to workspaces, by the name of the variable. */
export type AllowLists = Pick<Config, AllowList>

const metaKey = 'x-allowed-by'

/** Marks a text that only those workspaces may use to which the operator allows it. */
export const allowedBy = <Schema extends z.ZodType>(schema: Schema, list: AllowList): Schema => schema.meta({ [metaKey]: list })

interface SchemaNode {
  [metaKey]?: AllowList
  properties?: Record<string, SchemaNode>
}

/** Returns an issue for each marked text of a valid value, at any depth, that the operator does not allow to a workspace. */
export const notAllowedIn = (schema: z.ZodType, value: unknown, at: string, lists: AllowLists, workspace: string): TargetIssue[] => {
  const find = (node: SchemaNode, found: unknown, path: string): TargetIssue[] => {
    const { [metaKey]: list, properties = {} } = node
    if (typeof found === 'string') return list === undefined ? [] : refusalOf(list, found, lists, workspace, path)
    if (typeof found !== 'object' || found === null) return []
    return Object.entries(found).flatMap(([key, child]) => find(properties[key] ?? {}, child, `${path}.${key}`))
  }
  return find(toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as SchemaNode, value, at)
}

const refusalOf = (list: AllowList, text: string, lists: AllowLists, workspace: string, path: string): TargetIssue[] => {
  const { things, demand, allows } = rules[list]
  const granted = grantedTo(lists[list], workspace)
  if (allows(text, granted)) return []
  const message =
    granted.length === 0
      ? `is not allowed: the operator of this relay has allowed the workspace no ${things} (${list})`
      : `${demand} that the operator of this relay allows to the workspace (${list})`
  return [{ path, message }]
}
