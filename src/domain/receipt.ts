import { z } from 'zod'

/** What a target has acknowledged of a delivery, as it is stored, shown and told. It stays when the attempts of the delivery are removed. */
export const receipt = z
  .object({
    sha256: z
      .string()
      .describe('SHA-256 of the content that was sent, in hex. Some targets store other bytes: SharePoint rewrites Office files.'),
    size_bytes: z.int().describe('The size of that content.'),
    attempt_id: z.string().describe('The attempt that delivered it. It may have been removed since.'),
    answered_at: z.iso.datetime().describe('When the target had answered.'),
    target: z
      .record(z.string(), z.union([z.string(), z.number()]))
      .describe(
        'What the target calls the stored object, by the kind of the destination: `etag`, `version_id`, `item_id`, `file_id`, `doc_id`, `message_id`, ' +
          '`reply`, `id`, `status` and others. Empty if the path is its only name.',
      ),
  })
  .meta({ id: 'DeliveryReceipt' })

export type Receipt = z.output<typeof receipt>
