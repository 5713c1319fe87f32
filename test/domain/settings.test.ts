import { connectionSettings, connectionSettingsFields } from '../../src/domain/connection-settings.ts'
import { changeSettings, retryPolicyOf, workspaceSettings } from '../../src/domain/settings.ts'

const faultsOf = (complianceTier: boolean) =>
  changeSettings({ retry_max_interval_seconds: 5 }, { auditDays: null }, { complianceTier }).faults.map(({ path }) => path)

describe('workspace settings', () => {
  test('nothing stored means the defaults, and unknown keys that are stored do no harm', () => {
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
      receiverAllowedCidrs: [],
      rfc: null,
    })
    expect(workspaceSettings({ colour: 'red', max_retries: 3 })).toEqual({ ...defaults, maxRetries: 3 })
  })

  test('the retry policy is in milliseconds', () => {
    expect(retryPolicyOf(workspaceSettings({ max_retries: 2, retry_ttl_seconds: 60 }))).toEqual({
      maxRetries: 2,
      ttlMs: 60_000,
      initialIntervalMs: 10_000,
      maxIntervalMs: 3_600_000,
    })
  })

  test('a setting put back to its default is stored no longer, and what belongs to others stays', () => {
    const before = { max_retries: 3, audit_days: 30, colour: 'red' }
    const { faults, stored } = changeSettings(before, { maxRetries: 10 }, { complianceTier: false })
    expect(faults).toEqual([])
    expect(stored).toEqual({ audit_days: 30, colour: 'red' })
  })

  test('the system of the bridge is merged, and a new address of it needs its credentials again', () => {
    const change = (stored: object, rfc: Parameters<typeof changeSettings>[1]['rfc']) =>
      changeSettings(stored, { rfc }, { complianceTier: false })
    const credentials = { user: 'RELAY', password: 'canary' }
    expect(change({}, { url: 'https://erp' }).faults.map(({ path }) => path)).toEqual(['rfc.client'])
    expect(change({}, { url: 'https://erp', client: '100' }).faults.map(({ path }) => path)).toEqual(['rfc.credentials'])
    const { stored, faults } = change({}, { url: 'https://erp', client: '100', credentials })
    expect(faults).toEqual([])
    expect(stored).toEqual({ rfc: { url: 'https://erp', client: '100', allowed_functions: [] } })
    expect(change(stored, { allowedFunctions: ['RFC_PING'] }).stored).toEqual({
      rfc: { url: 'https://erp', client: '100', allowed_functions: ['RFC_PING'] },
    })
    expect(change(stored, { url: 'https://elsewhere' }).faults.map(({ path }) => path)).toEqual(['rfc.credentials'])
    expect(change(stored, null).stored).toEqual({})
  })

  test('rules that span settings see what is stored and what is new', () => {
    expect(faultsOf(false)).toEqual(['retry_initial_interval_seconds', 'audit_days'])
    expect(faultsOf(true)).toEqual(['retry_initial_interval_seconds'])
  })
})

describe('connection settings', () => {
  test('have defaults', () => {
    expect(connectionSettings({})).toEqual({ onResume: 'forward', pathTemplate: '{repo_id}/{doc_id}/{comp_id}', filter: {} })
    expect(connectionSettings({ filter: { content_types: ['image/tiff'], max_bytes: 5 } }).filter).toEqual({
      contentTypes: ['image/tiff'],
      maxBytes: 5,
    })
  })

  test.each([['{doc_id}-{comp_id}'], ['{yyyy}/{mm}/{dd}/{ar_object}/{repo_id}/{doc_id}/{comp_id}.{ext}']])(
    'takes the path template %p',
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
  ])('refuses the path template %p', (path_template, reason) => {
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
  ])('refuses %p', (settings) => {
    expect(connectionSettingsFields.safeParse(settings).success).toBe(false)
  })
})
