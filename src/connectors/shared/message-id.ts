import type { Payload } from '../connector.ts'

/**
 * Returns the id of a message with this content. It is identical in every attempt to send it, and another one after an append or an
 * overwrite: a target that drops the ids it has seen must not drop the new content.
 */
export const messageIdOf = ({ deliveryId, sha256 }: Pick<Payload, 'deliveryId' | 'sha256'>) => `${deliveryId}.${sha256.slice(0, 16)}`
