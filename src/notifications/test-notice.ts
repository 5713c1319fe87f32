import { consoleUrlOf } from '../base/console-url.ts'
import { newId } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import type { AuditActor } from '../db/audit.ts'
import { toSnakeCase } from '../domain/casing.ts'
import { noticeData, testNoticeType } from '../domain/notices.ts'
import { createTestDestinations, type TestDeps } from '../routing/configure-destinations.ts'
import type { TestResult } from '../routing/targets.ts'
import type { Workspace } from '../workspace/workspaces.ts'
import type { Notifications } from './notifications.ts'
import { testSummaryOf, testTextOf } from './text.ts'

export type TestNotificationDeps = Omit<TestDeps, 'config'> & {
  notifications: Notifications
  config: TestDeps['config'] & Pick<Config, 'RELAY_BASE_URL'>
}

/** Creates the use case that sends a test message to the destination of a notification, active or not. It is sent once and not stored. */
export const createTestNotification = (deps: TestNotificationDeps) => {
  const { testNotice } = createTestDestinations(deps)
  /** @throws AppError 404 */
  return async ({ id: workspaceId, ...slugs }: Workspace, id: string, actor: AuditActor, signal: AbortSignal): Promise<TestResult> => {
    const notification = await deps.notifications.find(workspaceId, id)
    const now = new Date().toISOString()
    const messageId = newId()
    const workspace = `${slugs.userSlug}/${slugs.workspaceSlug}`
    const data = {
      workspace,
      incidentId: messageId,
      summary: testSummaryOf(notification.name),
      openedAt: now,
      consoleUrl: consoleUrlOf(deps.config.RELAY_BASE_URL, `notifications/${id}`, workspace),
      count: 0,
    }
    const message = {
      id: messageId,
      workspace,
      subject: `Test in ${workspace}: ${data.summary}`,
      text: testTextOf(data),
      event: { type: testNoticeType, timestamp: now, data: toSnakeCase(noticeData, data) },
    }
    const result = await testNotice(workspaceId, notification.destinationId, message, signal)
    await deps.notifications.recordTest(workspaceId, notification, result, actor)
    return result
  }
}
