type Cleanup = () => Promise<unknown>

// jest runs set-up and teardown in one process, but they share only its global object.
const store = globalThis as typeof globalThis & { relayTestCleanups?: Cleanup[] }

/** Registers a step of the teardown. The steps run in the reverse order, once, even if several tiers were set up. */
export const registerCleanup = (cleanup: Cleanup): void => {
  store.relayTestCleanups = [cleanup, ...(store.relayTestCleanups ?? [])]
}

export default async (): Promise<void> => {
  for (const cleanup of store.relayTestCleanups?.splice(0) ?? []) await cleanup()
}
