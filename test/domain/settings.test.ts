import type { Tier } from '../../src/domain/bounds.ts'
import { connectionSettings, connectionSettingsFields } from '../../src/domain/connection-settings.ts'
import { auditDaysOf, changeSettings, retryPolicyOf, workspaceSettings } from '../../src/domain/settings.ts'

const issuesOf = (patch: Parameters<typeof changeSettings>[1], tier: Tier) =>
  changeSettings({ retry_max_interval_seconds: 5 }, patch, tier).issues.map(({ path }) => path)

describe('workspace settings', () => {
  test('default to fixed values, and unknown stored keys are ignored', () => {
    const defaults = workspaceSettings({})
    expect(defaults).toEqual({
      maxRetries: 10,
      retryTtlSeconds: 86_400,
      retryInitialIntervalSeconds: 10,
      retryMaxIntervalSeconds: 3_600,
      capturedRequestsDays: 30,
      capturedBodiesDays: 7,
      auditDays: 365,
      contentDays: null,
      eventsDays: 7,
      receiverAllowedCidrs: [],
      receiverMaxBytes: null,
      receiverMaxRequestsPerMinute: null,
      rfc: null,
    })
    expect(workspaceSettings({ colour: 'red', max_retries: 3 })).toEqual({ ...defaults, maxRetries: 3 })
  })

  test('are converted to a retry policy in milliseconds', () => {
    expect(retryPolicyOf(workspaceSettings({ max_retries: 2, retry_ttl_seconds: 60 }))).toEqual({
      maxRetries: 2,
      ttlMs: 60_000,
      initialIntervalMs: 10_000,
      maxIntervalMs: 3_600_000,
    })
  })

  test('are not stored if set to the default, and other stored keys are kept', () => {
    const before = { max_retries: 3, audit_days: 400, colour: 'red' }
    const { issues, stored } = changeSettings(before, { maxRetries: 10 }, 'standard')
    expect(issues).toEqual([])
    expect(stored).toEqual({ audit_days: 400, colour: 'red' })
  })

  test('merge changes of `rfc`, and require credentials again for a new URL', () => {
    const change = (stored: object, rfc: Parameters<typeof changeSettings>[1]['rfc']) => changeSettings(stored, { rfc }, 'standard')
    const credentials = { user: 'RELAY', password: 'canary' }
    expect(change({}, { url: 'https://erp' }).issues.map(({ path }) => path)).toEqual(['rfc.client'])
    expect(change({}, { url: 'https://erp', client: '100' }).issues.map(({ path }) => path)).toEqual(['rfc.credentials'])
    const { stored, issues } = change({}, { url: 'https://erp', client: '100', credentials })
    expect(issues).toEqual([])
    expect(stored).toEqual({ rfc: { url: 'https://erp', client: '100', allowed_functions: [] } })
    expect(change(stored, { allowedFunctions: ['RFC_PING'] }).stored).toEqual({
      rfc: { url: 'https://erp', client: '100', allowed_functions: ['RFC_PING'] },
    })
    expect(change(stored, { url: 'https://elsewhere' }).issues.map(({ path }) => path)).toEqual(['rfc.credentials'])
    expect(change(stored, null).stored).toEqual({})
  })

  test('are checked together: rules about several settings apply to stored and new values', () => {
    expect(issuesOf({ auditDays: null }, 'standard')).toEqual(['retry_initial_interval_seconds', 'audit_days'])
  })

  test('keep the audit log indefinitely in the compliance tier, where audit_days cannot be set', () => {
    expect(auditDaysOf(workspaceSettings({}), 'standard')).toBe(365)
    expect(auditDaysOf(workspaceSettings({ audit_days: 400 }), 'standard')).toBe(400)
    expect(auditDaysOf(workspaceSettings({ audit_days: 400 }), 'compliance')).toBeNull()
    const auditIssues = (auditDays: number | null, tier: Tier) => changeSettings({}, { auditDays }, tier).issues.map(({ path }) => path)
    expect(auditIssues(400, 'standard')).toEqual([])
    expect(auditIssues(400, 'compliance')).toEqual(['audit_days'])
    expect(auditIssues(null, 'compliance')).toEqual(['audit_days'])
  })

  test('are compared for the audit log by name, with redacted credentials', () => {
    const differenceOf = (stored: object, patch: Parameters<typeof changeSettings>[1]) =>
      changeSettings(stored, patch, 'standard').difference
    expect(differenceOf({}, { maxRetries: 10, contentDays: null })).toEqual({ before: {}, after: {} })
    expect(differenceOf({ max_retries: 3 }, { maxRetries: 5, receiverAllowedCidrs: ['10.0.0.0/8'] })).toEqual({
      before: { max_retries: 3, receiver_allowed_cidrs: [] },
      after: { max_retries: 5, receiver_allowed_cidrs: ['10.0.0.0/8'] },
    })
    const credentials = { user: 'RELAY', password: 'canary' }
    expect(differenceOf({}, { rfc: { url: 'https://erp', client: '100', credentials } })).toEqual({
      before: { 'rfc.url': null, 'rfc.client': null, 'rfc.allowed_functions': null, 'rfc.credentials': null },
      after: { 'rfc.url': 'https://erp', 'rfc.client': '100', 'rfc.allowed_functions': [], 'rfc.credentials': '[REDACTED]' },
    })
    const stored = { rfc: { url: 'https://erp', client: '100', allowed_functions: [] } }
    expect(differenceOf(stored, { rfc: { credentials } })).toEqual({
      before: { 'rfc.credentials': '[REDACTED]' },
      after: { 'rfc.credentials': '[REDACTED]' },
    })
    expect(differenceOf(stored, { rfc: { client: '200' } })).toEqual({ before: { 'rfc.client': '100' }, after: { 'rfc.client': '200' } })
    expect(differenceOf(stored, { rfc: null }).after).toMatchObject({ 'rfc.url': null, 'rfc.credentials': null })
  })

  test('allow a time to live that is shorter than the first delay only if there are no retries', () => {
    const pathsOf = (change: Parameters<typeof changeSettings>[1]) => changeSettings({}, change, 'standard').issues.map(({ path }) => path)
    expect(pathsOf({ retryTtlSeconds: 9 })).toEqual(['retry_ttl_seconds'])
    expect(pathsOf({ retryTtlSeconds: 10 })).toEqual([])
    expect(pathsOf({ retryTtlSeconds: 9, maxRetries: 0 })).toEqual([])
    expect(pathsOf({ retryTtlSeconds: 9, retryInitialIntervalSeconds: 9 })).toEqual([])
  })
})

describe('connection settings', () => {
  test('have defaults', () => {
    expect(connectionSettings({})).toEqual({
      onResume: 'forward',
      pathTemplate: '{repo_id}/{doc_id}/{comp_id}',
      filter: {},
      properties: {},
    })
    expect(connectionSettings({ filter: { content_types: ['image/tiff'], max_bytes: 5 } }).filter).toEqual({
      contentTypes: ['image/tiff'],
      maxBytes: 5,
    })
  })

  test.each([['{doc_id}-{comp_id}'], ['{yyyy}/{mm}/{dd}/{ar_object}/{repo_id}/{doc_id}/{comp_id}.{ext}']])(
    'accept the path template %p',
    (path_template) => {
      expect(connectionSettings({ path_template }).pathTemplate).toBe(path_template)
    },
  )

  test.each([
    ['{doc_id}/{comp_id}/{user}', 'unknown placeholder {user}'],
    ['{doc_id}/{comp_id}/{}', 'unknown placeholder {}'],
    ['{doc_id}/{comp_id', 'brace'],
    ['{doc_id}/{{comp_id}}', 'brace'],
    ['{doc_id}.{ext}', 'must contain {comp_id}'],
    ['{comp_id}', 'must contain {doc_id}'],
    ['/{doc_id}/{comp_id}', 'relative'],
    ['../{doc_id}/{comp_id}', 'relative'],
    ['{doc_id}//{comp_id}', 'relative'],
    ['{doc_id}\\{comp_id}', 'backslashes'],
    ['{doc_id}/{comp_id}\n', 'control'],
  ])('reject the path template %p', (path_template, reason) => {
    const { error } = connectionSettingsFields.safeParse({ path_template })
    expect(error?.issues[0]?.message).toContain(reason)
  })

  test.each([
    [{ colour: 'red' }],
    [{ on_resume: 'drop' }],
    [{ filter: { colour: 'red' } }],
    [{ filter: { content_types: [] } }],
    [{ filter: { content_types: ['application/*; q=1'] } }],
    [{ filter: { min_bytes: 2, max_bytes: 1 } }],
    [{ filter: { min_bytes: -1 } }],
  ])('reject %p', (settings) => {
    expect(connectionSettingsFields.safeParse(settings).success).toBe(false)
  })
})
