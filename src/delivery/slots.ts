// Two limits hold at a time. The destination's own limits hold for the installation, by leases in the database: see leases.ts. This file
// shares the places of one worker process, so that no workspace and no destination keeps the others from them.

/** Limits of a destination. */
export interface DestinationLimits {
  /** Concurrent attempts of the installation. */
  maxConcurrent: number
  /** Attempts that the installation starts per minute; 0 is no limit. */
  maxPerMinute: number
}

// Deliveries that waited come back a little late, so a rate may catch up on five seconds. The interval is longer in return, so that no
// minute sees more attempts than the limit.
export const catchUpMs = 5_000
export const intervalMs = ({ maxPerMinute }: Pick<DestinationLimits, 'maxPerMinute'>) =>
  maxPerMinute === 0 ? 0 : (60_000 + catchUpMs) / maxPerMinute

interface PlaceRequest {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  destinationId: string
  /** The attempt goes on with an upload that a lost worker has begun. */
  resumes?: boolean
}

/** Numbers of running attempts of a workspace, by destination. */
type Running = Map<string, number>

const sumOf = (running: Running): number => [...running.values()].reduce((sum, count) => sum + count, 0)

/**
 * Creates the places of a worker process for attempts. A workspace never takes more of them than it leaves free, and neither does a
 * destination of what its workspace may take. However many targets hang, other workspaces go on: of 100 places, one workspace gets 50, a
 * second 25, a third 12. One that runs nothing gets any free place.
 */
export const createSlots = (total: number) => {
  const workspaces = new Map<string, Running>()
  let taken = 0

  const isAdmitted = (running: Running, destinationId: string): boolean => {
    if (taken >= total) return false
    const ofWorkspace = sumOf(running)
    if (ofWorkspace === 0) return true
    // Half of what the other workspaces leave.
    const share = Math.floor((total - (taken - ofWorkspace)) / 2)
    if (ofWorkspace >= share) return false
    const ofDestination = running.get(destinationId) ?? 0
    return ofDestination === 0 || ofDestination < share - ofWorkspace
  }

  return {
    /** Takes a place. @returns a function that gives it back and is safe to repeat, or undefined if the attempt has to wait */
    acquire: ({ workspace, destinationId, resumes = false }: PlaceRequest): (() => void) | undefined => {
      const running: Running = workspaces.get(workspace) ?? new Map<string, number>()
      if (!resumes && !isAdmitted(running, destinationId)) return undefined
      workspaces.set(workspace, running)
      running.set(destinationId, (running.get(destinationId) ?? 0) + 1)
      taken += 1
      let isReleased = false
      return () => {
        if (isReleased) return
        isReleased = true
        taken -= 1
        const rest = running.get(destinationId)! - 1
        if (rest > 0) running.set(destinationId, rest)
        else running.delete(destinationId)
        if (running.size === 0) workspaces.delete(workspace)
      }
    },
  }
}

export type Slots = ReturnType<typeof createSlots>
