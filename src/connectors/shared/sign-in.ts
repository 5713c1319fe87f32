import type { z } from 'zod'

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

/** Names the ways to sign in in the description of the API, from which forms are made. The first one is proposed. */
export const withSignIns = <Schema extends z.ZodType>(schema: Schema, signIns: readonly SignIn[]): Schema =>
  schema.meta({ 'x-sign-in': signIns.map(({ name, required, optional = [] }) => ({ name, required, optional })) })
