import { destinationsOf } from '../../src/app/use-cases.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createEventSubscriptions } from '../../src/events/subscriptions.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'

// What fails is tried at once after a change that may have repaired it, and after no other.

const { db } = share(await createTestDatabase())

describe('a failing event subscription', () => {
  const subscriptions = createEventSubscriptions(db)
  const failure = {
    attempts: 7,
    failingSince: new Date(0),
    nextAttemptAt: new Date(4_000_000_000_000),
    lastError: 'no',
    lastErrorCode: 'timeout',
  }

  const arrange = async () => {
    const { workspaceId, destinations } = await createRoutes(db, [{ name: 'inbox' }, { name: 'other' }])
    const wanted = { name: 'Data', events: ['document.received' as const], destinationId: destinations['inbox']!, isActive: true }
    const { id } = await subscriptions.insert(workspaceId, wanted, systemActor)
    await db('event_subscriptions')
      .where({ id })
      .update({
        attempts: failure.attempts,
        failing_since: failure.failingSince,
        next_attempt_at: failure.nextAttemptAt,
        last_error: failure.lastError,
        last_error_code: failure.lastErrorCode,
        updated_at: new Date(0),
      })
    const change = (values: Parameters<typeof subscriptions.update>[2]) => subscriptions.update(workspaceId, id, values, systemActor)
    return {
      wanted,
      otherId: destinations['other']!,
      change,
      version: async () => (await db('event_subscriptions').where({ id }).first()).version,
    }
  }

  test('goes on failing under another name, and its workflow goes on', async () => {
    const { wanted, change, version } = await arrange()
    const before: unknown = await version()
    const renamed = await change({ name: 'Other' })
    expect(renamed).toMatchObject({ ...failure, name: 'Other' })
    expect(renamed.updatedAt.getTime()).toBeGreaterThan(0)
    expect(await change({ ...wanted, name: 'Third' })).toMatchObject(failure)
    expect(await version()).toBe(before)
  })

  test.each([
    ['other events', () => ({ events: ['document.failed' as const] })],
    ['another destination', ({ otherId }: { otherId: string }) => ({ destinationId: otherId })],
    ['a stop', () => ({ isActive: false })],
    ['another name together with a stop', () => ({ name: 'Other', isActive: false })],
  ])('begins anew after %s', async (_, changeOf) => {
    const scene = await arrange()
    const before = (await scene.version()) as number
    const begun = { attempts: 0, failingSince: null, nextAttemptAt: null, lastError: null, lastErrorCode: null }
    expect(await scene.change(changeOf(scene))).toMatchObject(begun)
    expect(await scene.version()).toBe(before + 1)
  })
})

describe('the circuit of a destination that fails', () => {
  const trialAt = new Date(Date.now() + 3_600_000)
  const destinations = destinationsOf(db)

  const change = async (changed: { name?: string; config?: Record<string, unknown> }) => {
    const routes = await createRoutes(db, [{ name: 'inbox' }])
    const id = routes.destinations['inbox']!
    await db('destination_gates').insert({ destination_id: id, circuit: 'open', failures: 10, trial_at: trialAt })
    await destinations.update(routes.workspaceId, id, () => changed, systemActor)
    const { trial_at, failures } = await db('destination_gates').where({ destination_id: id }).first()
    return { waits: (trial_at as Date).getTime() === trialAt.getTime(), failures: failures as number }
  }

  test('keeps its pause when the destination gets another name', async () => {
    expect(await change({ name: 'Other' })).toEqual({ waits: true, failures: 10 })
  })

  test('lets the next delivery try another config', async () => {
    expect(await change({ config: { url: 'https://other.example/' } })).toEqual({ waits: false, failures: 10 })
  })
})
