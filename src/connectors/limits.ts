import { z } from 'zod'

const fields = {
  max_concurrent_deliveries: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('Deliveries that run at this destination at a time, per worker process. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION'),
  max_deliveries_per_minute: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe(
      'Deliveries that start at this destination per minute, per worker process; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION',
    ),
}

const limits = z.object(fields)

/** Adds to a connector's config the limits that every destination may set. */
export const withLimits = (config: z.ZodType): z.ZodType => {
  if (!(config instanceof z.ZodObject)) throw new TypeError('The config of a connector must be an object schema')
  return config.safeExtend(fields)
}

/**
 * Returns the limits in a destination's config. Ignores limits that are invalid: parsing the whole config reports them.
 */
export const limitsOf = (config: unknown): z.output<typeof limits> => limits.safeParse(config).data ?? {}
