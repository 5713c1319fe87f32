import type { components } from '../../clients/typescript/src/schema.ts'

type Code = components['schemas']['Error']['error']['code']

// The message of the API adds nothing to the sentences of these codes.
const selfExplanatory: ReadonlySet<string> = new Set<Code>([
  'unauthorized',
  'not_found',
  'precondition_failed',
  'validation_failed',
  'loop_detected',
  'internal_error',
])

const sentences: Record<Code, string> = {
  invalid_request: 'Die Anfrage ist fehlerhaft.',
  unauthorized: 'Der Schlüssel ist nicht gültig: Er ist falsch, widerrufen oder abgelaufen.',
  forbidden: 'Das ist nicht erlaubt.',
  not_found: 'Nicht vorhanden oder gelöscht.',
  method_not_allowed: 'Das ist hier nicht möglich.',
  conflict: 'Der aktuelle Zustand lässt das nicht zu.',
  nothing_to_retry: 'Es gibt nichts zu wiederholen.',
  gone: 'Das ist nicht mehr verfügbar.',
  precondition_failed: 'Die Werte haben sich inzwischen geändert. Laden Sie die Seite neu.',
  payload_too_large: 'Die Anfrage ist zu groß.',
  unsupported_media_type: 'Das Format der Anfrage wird nicht angenommen.',
  range_not_satisfiable: 'Der verlangte Teil des Inhalts ist nicht vorhanden.',
  validation_failed: 'Einige Werte sind ungültig.',
  abap_exception: 'Der Funktionsbaustein hat eine Ausnahme ausgelöst.',
  rate_limited: 'Zu viele Anfragen. Versuchen Sie es später erneut.',
  rfc_failed: 'Der Aufruf im angebundenen System ist fehlgeschlagen.',
  unavailable: 'Derzeit nicht verfügbar. Versuchen Sie es in Kürze erneut.',
  rfc_timeout: 'Das angebundene System hat nicht rechtzeitig geantwortet.',
  loop_detected: 'Die Anfrage stammt vom Relay selbst, weil ein Ziel zu ihm zurückführt. Berichtigen Sie die Adresse des Ziels.',
  internal_error: 'Im Relay ist ein unerwarteter Fehler aufgetreten.',
}

interface Explanation {
  text: string
  /** Set if the API has worded the text. */
  lang?: 'en'
  /** What the API says beyond the text, in English. */
  more?: string
}

const withMore = (text: string, more: string): Explanation => (more === '' ? { text } : { text, more })

export const en = {
  /** Says what an error means. The code `unknown` stands for an answer that is not of the relay, for example one of a proxy. */
  explain: (code: string, message: string): Explanation => {
    if (code === 'unknown') return withMore('The relay gave an unexpected answer.', message)
    return { text: code === 'not_found' ? 'It does not exist, or has been deleted.' : message }
  },
}

export const de: typeof en = {
  explain: (code, message) => {
    if (code === 'unknown') return withMore('Das Relay hat unerwartet geantwortet.', message)
    if (!Object.hasOwn(sentences, code)) return { text: message, lang: 'en' }
    const text = sentences[code as Code]
    return selfExplanatory.has(code) ? { text } : withMore(text, message)
  },
}
