import { z } from 'zod'

const fields = {
  max_concurrent_deliveries: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe(
      'Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION',
    ),
  max_deliveries_per_minute: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe(
      'Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION',
    ),
}

/** Adds to a connector's config the limits that every destination may set. */
export const withLimits = (config: z.ZodType): z.ZodType => {
  if (!(config instanceof z.ZodObject)) throw new TypeError('The config of a connector must be an object schema')
  return config.safeExtend(fields)
}
