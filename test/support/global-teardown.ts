import { rm } from 'node:fs/promises'

interface Cleanup {
  stop?: () => Promise<void>
  workDir?: string
}

// jest runs set-up and teardown in one process, and nothing but its global object leads from the one to the other
const store = globalThis as typeof globalThis & { relayTestCleanup?: Cleanup }

export const afterwards = (cleanup: Cleanup): void => {
  store.relayTestCleanup = { ...store.relayTestCleanup, ...cleanup }
}

export default async () => {
  const { stop, workDir } = store.relayTestCleanup ?? {}
  await stop?.()
  if (workDir) await rm(workDir, { recursive: true, force: true })
}
