import type { z } from 'zod'
import type { Connector } from '../connector.ts'
import { listOf } from './schema-fields.ts'

/** A way to sign in at a target. */
export interface SignIn<Key extends string = string> {
  name: string
  /** Keys of the credentials that it needs. */
  required: readonly Key[]
  /** Keys that go with them. */
  optional?: readonly Key[]
}

/** No credentials are sent to sign in. */
export const noSignIn: SignIn<never> = { name: 'none', required: [] }

const metaKey = 'x-sign-in'

/** Names the ways to sign in in the description of the API, from which forms are made. The first one is proposed. */
export const withSignIns = <Schema extends z.ZodType>(schema: Schema, signIns: readonly SignIn[]): Schema =>
  schema.meta({ [metaKey]: signIns.map(({ name, required, optional = [] }) => ({ name, required, optional })) })

/** Returns the name of the way in which valid credentials sign in, or null if the connector knows only one. */
export const signInOf = ({ credentials: schema }: Pick<Connector, 'credentials'>, credentials: object): string | null => {
  const signIns = (schema.meta()?.[metaKey] ?? []) as SignIn[]
  if (signIns.length < 2) return null
  const has = ({ required }: SignIn) => required.length > 0 && required.every((key) => Object.hasOwn(credentials, key))
  // One way may need the keys of another, and more.
  const [used] = signIns.filter(has).toSorted((one, other) => other.required.length - one.required.length)
  return (used ?? signIns.find(({ required }) => required.length === 0))?.name ?? null
}

type Check = z.core.$RefinementCtx

/** Adds an issue unless the credentials have exactly one of the ways to sign in. @param message says which there are */
export const checkOneSignIn = <Key extends string>(
  signIns: readonly SignIn<Key>[],
  values: { [Name in Key]?: unknown },
  context: Check,
  message: string,
): void => {
  const isSet = (key: Key) => values[key] !== undefined
  const candidates = signIns.filter(({ required }) => required.some(isSet))
  // Ways that share a key are told apart by the others.
  const isShared = (key: Key) => signIns.filter(({ required }) => required.includes(key)).length > 1
  const named = candidates.filter(({ required }) => required.some((key) => isSet(key) && !isShared(key)))
  const isNamed = (key: Key) => named.some(({ required }) => required.includes(key))
  const others = candidates.filter(({ required }) => required.some((key) => isSet(key) && !isNamed(key)))
  const used = [...named, ...others.slice(0, 1)]
  if (used.length !== 1) context.addIssue({ code: 'custom', message })
  for (const { required } of used) {
    for (const key of required.filter((each) => !isSet(each))) {
      context.addIssue({ code: 'custom', path: [key], message: `is missing; ${listOf(required)} must be set together` })
    }
  }
  for (const { required, optional = [] } of signIns.filter((signIn) => !used.includes(signIn))) {
    const isUnused = (key: Key) => isSet(key) && !used.some((signIn) => [...signIn.required, ...(signIn.optional ?? [])].includes(key))
    for (const key of optional.filter(isUnused)) context.addIssue({ code: 'custom', path: [key], message: `needs ${listOf(required)}` })
  }
}
