/** How far a delivery is. */
export const deliveryStatuses = ['pending', 'held', 'retrying', 'delivered', 'failed', 'cancelled'] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** How far a document is: PostgreSQL derives it from its deliveries (migrations/20261121090300_create_documents.ts). */
export const documentStatuses = ['pending', 'delivered', 'failed', 'retrying', 'discarded'] as const
export type DocumentStatus = (typeof documentStatuses)[number]
