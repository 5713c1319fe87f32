import { readdir } from 'node:fs/promises'
import * as apiErrors from '../../console/texts/api-errors.ts'
import { en as attention } from '../../console/texts/attention.ts'
import { en as audit } from '../../console/texts/audit.ts'
import * as common from '../../console/texts/common.ts'
import { en as document } from '../../console/texts/document.ts'
import { en as enrichments } from '../../console/texts/enrichments.ts'
import { en as keys } from '../../console/texts/keys.ts'
import { en as notifications } from '../../console/texts/notifications.ts'
import * as remedies from '../../console/texts/remedies.ts'
import * as repositories from '../../console/texts/repositories.ts'
import { en as requests } from '../../console/texts/requests.ts'
import { en as settingsWords } from '../../console/texts/settings.ts'
import { en as subscriptions } from '../../console/texts/subscriptions.ts'
import { errorSchemas } from '../../src/api/open-api/error-responses.ts'
import { errorStatus } from '../../src/base/errors.ts'
import { truncationReasons } from '../../src/capture/body.ts'
import { errorCodes, failedThings } from '../../src/connectors/error-codes.ts'
import { attemptOutcomes } from '../../src/delivery/attempt-log.ts'
import { auditEventNames, auditSubjectTypes } from '../../src/domain/audit-events.ts'
import { deliveryEnds, deliveryStatuses, documentStatuses } from '../../src/domain/delivery-states.ts'
import { eventNames } from '../../src/domain/events.ts'
import { incidentEventNames, noticeStatuses } from '../../src/domain/notices.ts'
import { refusals } from '../../src/domain/refusal-codes.ts'
import { keyLevels } from '../../src/security/levels.ts'

const refusalCodes = Object.keys(refusals)

const folder = new URL('../../console/texts/', import.meta.url)
const names = (await readdir(folder)).filter((name) => name !== 'plural.ts')

/** Returns the path of each text with its kind. */
const entriesOf = (texts: object, prefix = ''): string[] =>
  Object.entries(texts).flatMap(([name, value]) =>
    typeof value === 'object' ? entriesOf(value, `${prefix}${name}.`) : [`${prefix}${name}: ${typeof value}`],
  )

const textsOf = (texts: object): string[] =>
  Object.values(texts).flatMap((value) => (typeof value === 'object' ? textsOf(value) : typeof value === 'string' ? [value] : []))

test.each(names)('%s has the same texts in both languages, and none is empty', async (name) => {
  const { en, de } = (await import(new URL(name, folder).href)) as { en: object; de: object }
  expect(entriesOf(de)).toEqual(entriesOf(en))
  expect(entriesOf(en)).not.toEqual([])
  for (const text of [...textsOf(en), ...textsOf(de)]) expect(text.trim()).not.toBe('')
})

test.each([
  ['document status', common.en.documentStatus, documentStatuses],
  ['delivery status', common.en.deliveryStatus, deliveryStatuses],
  ['outcome of an attempt', document.outcomes, attemptOutcomes],
  ['end of a delivery', document.endedBy, deliveryEnds],
  ['level of a key', common.en.app.level, keyLevels],
  ['level of a new key', keys.choices.level, keyLevels],
  ['event of the audit log', audit.events, auditEventNames],
  ['subject of the audit log', audit.subjects, auditSubjectTypes],
  ['incident', notifications.choices.events, incidentEventNames],
  ['status of a notice', notifications.noticeStatus, noticeStatuses],
  ['event', subscriptions.choices.events, eventNames],
  ['reason why a body is not stored', requests.reasons, [...truncationReasons, 'unknown']],
] as const)('each %s has a text', (_, texts, values) => {
  expect(Object.keys(texts).toSorted()).toEqual([...values].toSorted())
})

test('each error code, and a code that is not known, has a remedy in both languages', () => {
  const codes = Object.keys(errorCodes) as (keyof typeof errorCodes)[]
  for (const code of [...codes, 'http_404', 'smtp_550', 'of_a_newer_version']) {
    for (const failed of failedThings) {
      expect(remedies.en.remedy(code, 'Archive', failed)).toMatch(
        /^[A-Z].*\w[,.] (then retry the document|then retry the deliveries|The relay tries again by itself|then test it again)\.$/,
      )
      expect(remedies.de.remedy(code, 'Archiv', failed)).toMatch(
        /^[A-Z].*\w[,.] (dann das Dokument wiederholen|dann die Zustellungen wiederholen|Das Relay versucht es von selbst wieder|dann erneut testen)\.$/,
      )
    }
  }
  // "Check that it is reachable" would send a person who reads German to the network, although the disk is full.
  const specific = codes.filter((code) => errorCodes[code].remedy === 'target' && 'action' in errorCodes[code])
  expect(specific).toContain('storage_full')
  expect(specific.filter((code) => remedies.de.remedy(code, 'Archiv', 'test').includes('erreichbar ist'))).toEqual([])
  // A failure without a code was ended in Temporal: nothing has to be repaired.
  expect(remedies.en.remedy(null, 'Archive', 'ended')).toBe('Retry what is still needed there; acknowledge the rest.')
  expect(remedies.de.remedy(null, 'Archiv', 'ended')).toMatch(/^Was dort noch gebraucht wird, wiederholen/)
})

test('each error code of the API has a German sentence, and the API words a code that is not known', () => {
  const codes = [...Object.keys(errorStatus), 'internal_error']
  expect(errorSchemas['ErrorCode']).toMatchObject({ 'x-extensible-enum': codes })
  const explained = codes.map((code) => apiErrors.de.explain(code, 'The relay says more.'))
  for (const { text, lang } of explained) expect({ text, lang }).toEqual({ text: expect.stringMatching(/^[A-ZÄÖÜ].*\.$/), lang: undefined })
  expect(new Set(explained.map(({ text }) => text)).size).toBe(codes.length)
  expect(apiErrors.de.explain('conflict', 'It has ended.')).toMatchObject({ more: 'It has ended.' })
  expect(apiErrors.de.explain('validation_failed', 'Some values are invalid.')).not.toHaveProperty('more')
  expect(apiErrors.de.explain('of_a_newer_version', 'It is new.')).toEqual({ text: 'It is new.', lang: 'en' })
  expect(apiErrors.en.explain('conflict', 'It has ended.')).toEqual({ text: 'It has ended.' })
})

test('numbers are written as the language does', () => {
  expect(common.en.pager.range(26, 50, 1_234_567)).toBe('26 to 50 of 1,234,567')
  expect(common.de.pager.range(26, 50, 1_234_567)).toBe('26 bis 50 von 1.234.567')
  expect([attention.documents(1), attention.documents(2)]).toEqual(['1 document', '2 documents'])
})

test('each ready enrichment has a name, and no name is without one', async () => {
  const files = await readdir(new URL('../../docs/enrichments', import.meta.url))
  expect(
    Object.keys(enrichments.ready)
      .map((name) => `${name}.json`)
      .toSorted(),
  ).toEqual(files.toSorted())
})

const settingNames = Object.keys(settingsWords.fields).filter((name) => name.includes('_') && !name.includes('.'))
const settingIn = (text: string) => settingNames.find((name) => text.includes(name))

test.each([
  ['en', remedies.en, repositories.en],
  ['de', remedies.de, repositories.de],
] as const)(
  'texts in %s name a setting as its screen does, and say who sets a variable',
  async (language, { remedyOfRefusal }, { warningTexts }) => {
    const catalogues = await Promise.all(
      names.map(async (name) => ((await import(new URL(name, folder).href)) as Record<'en' | 'de', Record<string, unknown>>)[language]),
    )
    const refused = refusalCodes.map((code) => remedyOfRefusal(code)!)
    const texts = [...catalogues.flatMap(textsOf), ...refused]
    // `WithSettings` shows these, with links instead of the names.
    const linked = new Set([...refused, ...Object.values(warningTexts)])
    expect(texts.filter((text) => settingIn(text) !== undefined && !linked.has(text))).toEqual([])
    expect(
      texts.filter((text) => /\b(?:RELAY|CAPTURE|CONTENT|DATABASE|TEMPORAL)_[A-Z_]+/.test(text) && !/operator|Betreiber/.test(text)),
    ).toEqual([])
    expect([...linked].filter(settingIn).length).toBeGreaterThan(2)
  },
)
