import { goneReceiver } from '../domain/events.ts'
import type { FindConditions } from './condition.ts'

// Retries repair what is shorter.
const failingMinutes = 15

const remedy =
  'Repair the receiver; the relay then sends the event again and goes on. An event that the receiver cannot take is passed over by a replay behind it.'

const goneRemedy =
  'The receiver answered 410 Gone: it wants no more events, and the subscription was stopped. Activate it when there is a receiver again: no event that is kept is lost. Otherwise delete it.'

interface Row {
  workspaceId: string
  subscription: { id: string; name: string }
  destination: { id: string; name: string; type: string }
  error: { code: string; message: string }
  count: number
  since: Date
}

/** Finds active event subscriptions whose next event has not been accepted for some time, and those that a 410 has stopped. */
export const findFailingSubscriptions: FindConditions = async (trx, { workspaceIds }) => {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      event_subscriptions.workspace_id as "workspaceId",
      jsonb_build_object('id', event_subscriptions.id, 'name', event_subscriptions.name) as subscription,
      jsonb_build_object('id', destinations.id, 'name', destinations.name, 'type', connector_type) as destination,
      jsonb_build_object('code', event_subscriptions.last_error_code, 'message', event_subscriptions.last_error) as error,
      event_subscriptions.attempts as count, event_subscriptions.failing_since as since
    from event_subscriptions
    join destinations on destinations.id = destination_id
    where event_subscriptions.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and (
        (is_active and failing_since < now() - :failingMinutes * interval '1 minute')
        or (not is_active and last_error_code = :goneReceiver)
      )
    `,
    { failingMinutes, goneReceiver, workspaceIds },
  )
  return rows.map(({ workspaceId, subscription, destination, error, count, since }) => ({
    workspaceId,
    subject: subscription.id,
    count,
    since,
    details: { subscription, destination, error, remedy: error.code === goneReceiver ? goneRemedy : remedy },
  }))
}
