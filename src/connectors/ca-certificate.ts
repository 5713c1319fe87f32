import { z } from 'zod'

/** The authority a destination trusts, for every kind that speaks TLS. */
export const caCertificate = z
  .string()
  .max(100_000)
  .regex(/-----BEGIN CERTIFICATE-----/, 'is no PEM certificate')
  .optional()
  .describe('PEM of the authority that signed the certificate of the target; trusted in place of the public ones')
