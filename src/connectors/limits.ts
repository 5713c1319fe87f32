import { z } from 'zod'

const fields = {
  max_concurrent_deliveries: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('Deliveries at work there at a time, in each worker process; without it DELIVERY_MAX_CONCURRENT_PER_DESTINATION'),
  max_deliveries_per_minute: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe(
      'Deliveries begun there in a minute by each worker process, 0 for any number; without it DELIVERY_MAX_PER_MINUTE_PER_DESTINATION',
    ),
}

const limits = z.object(fields)

/** The config of a connector, and with it what every destination may say of its pace. */
export const withLimits = (config: z.ZodType): z.ZodType => {
  if (!(config instanceof z.ZodObject)) throw new TypeError('the config of a connector must be an object schema')
  return config.safeExtend(fields)
}

/** What a destination's config says of its pace; nothing where it does not fit, which parsing the whole of it will tell. */
export const limitsOf = (config: unknown): z.output<typeof limits> => limits.safeParse(config).data ?? {}
