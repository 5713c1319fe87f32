import { AppError } from '../base/errors.ts'
import { rfcCredentials } from '../domain/rfc-settings.ts'
import { rfcBoundValues, workspaceSettings } from '../domain/settings.ts'
import { openOrUndefined, rfcCredentialsOf, type KeyRing } from '../security/seal.ts'
import type { Workspaces } from '../workspace/workspaces.ts'
import type { RfcTarget } from './rfc-client.ts'

export interface RfcTargetDeps {
  workspaces: Pick<Workspaces, 'findSettings' | 'findRfcCredentials'>
  keyRing: KeyRing
}

/**
 * Loads the system to call.
 * @throws `AppError` if the workspace has no system configured or does not allow the function
 */
export const findRfcTarget = async (
  workspaceId: string,
  calledFunction: string,
  { workspaces, keyRing }: RfcTargetDeps,
): Promise<RfcTarget> => {
  const { settings } = await workspaces.findSettings(workspaceId)
  const { rfc } = workspaceSettings(settings)
  if (!rfc) throw new AppError('conflict', 'This workspace has no system to call. Set rfc in the workspace settings.')
  if (!rfc.allowedFunctions.includes(calledFunction)) {
    throw new AppError(
      'forbidden',
      `The function ${calledFunction} is not allowed. Add it to rfc.allowed_functions in the workspace settings.`,
    )
  }
  const sealed = await workspaces.findRfcCredentials(workspaceId)
  if (!sealed) throw new AppError('conflict', 'The credentials for the system are missing. Set rfc.credentials in the workspace settings.')
  const opened = openOrUndefined(keyRing, sealed, rfcCredentialsOf(workspaceId, rfcBoundValues(settings)))
  if (opened === undefined) {
    const message =
      'The credentials for the system were sealed for another one or with a lost key. Set rfc.credentials in the workspace settings again.'
    throw new AppError('conflict', message)
  }
  return { ...rfc, credentials: rfcCredentials.parse(opened) }
}
