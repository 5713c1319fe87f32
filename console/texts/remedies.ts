import { errorClassOf, remedyFor, type FailedThing, type Remedy } from '../../src/connectors/error-codes.ts'
import { isRefusalCode, refusals, type RefusalCode } from '../../src/domain/refusal-codes.ts'

/** `{destination}` stands for the name of the destination. */
const actions: Record<Remedy, string> = {
  credentials: 'Gültige Zugangsdaten für das Ziel {destination} speichern',
  permission: 'Dem Konto des Ziels {destination} die fehlenden Berechtigungen geben',
  configuration: 'Die Konfiguration des Ziels {destination} nach der Meldung berichtigen',
  target: 'Prüfen, ob das Ziel {destination} erreichbar ist und Anfragen annimmt',
  relay: 'Das Problem im Relay beheben, das die Meldung nennt',
}

const freeStorage = 'Speicher beim Ziel {destination} freigeben oder sein Kontingent erhöhen'
/** What is said by code, where the action of the kind would lead to the wrong place. */
const actionsByCode = new Map([
  ['answered_early', 'Prüfen, ob die Gegenstelle des Ziels {destination} Anfragen bis zum Ende liest, bevor sie antwortet'],
  ['attempt_timeout', 'Prüfen, wie schnell das Ziel {destination} Daten annimmt, oder DELIVERY_ATTEMPT_TIMEOUT_MS erhöhen'],
  ['certificate_refused', 'Das TLS-Zertifikat der Gegenstelle erneuern oder ca_certificate des Ziels {destination} berichtigen'],
  ['file_system_failure', 'Prüfen, ob das Dateisystem des Ziels {destination} auf jedem Worker eingehängt ist und arbeitet'],
  ['host_not_found', 'Den Hostnamen des Ziels {destination} und die Namensauflösung der Worker prüfen'],
  ['locked', 'Die Datei, die das Dokument beim Ziel {destination} ersetzt, schließen oder einchecken'],
  ['login_unsupported', 'Sich beim Ziel {destination} so anmelden, wie sein Mailserver es anbietet'],
  ['message_refused', 'Den Administrator des Mailservers des Ziels {destination} fragen, warum er die Nachricht abweist'],
  ['quota_exceeded', freeStorage],
  ['rate_limited', 'Die Rate des Ziels {destination} (max_deliveries_per_minute) senken oder das Kontingent des Kontos erhöhen'],
  ['sftp_unavailable', 'Dem Konto des Ziels {destination} SFTP erlauben, ohne Ausgabe bei der Anmeldung'],
  ['storage_full', freeStorage],
  ['tls_failed', 'Prüfen, ob das Ziel {destination} an seinem Port TLS 1.2 oder neuer anbietet'],
])

const conclusions: Record<FailedThing, string> = {
  ended: ', dann das Dokument wiederholen.',
  group: ', dann die Zustellungen wiederholen.',
  retried: '. Das Relay versucht es von selbst wieder.',
  test: ', dann erneut testen.',
}

const afterRefusals: Record<RefusalCode, string> = {
  invalid_parameter: 'Den Parameter oder den Teil des Bodys berichtigen, den die Antwort nennt.',
  too_large: 'Falls das Dokument zulässig ist, muss der Betreiber des Relays RELAY_DOCUMENT_MAX_BYTES erhöhen.',
  signature_missing:
    'In der Transaktion OAC0 des Quellsystems „Keine Signatur“ abwählen, oder das Repository unsignierte Anfragen annehmen lassen.',
  signature_invalid:
    'Wurde die PSE des Quellsystems erneuert, das Zertifikat erneut senden und aktivieren. Sonst prüfen, ob ein Proxy die URL verändert.',
  url_expired: 'Die Zeiten in der Antwort vergleichen und Uhr oder Zeitzone des Quellsystems oder des Relays berichtigen.',
  access_mode_denied: 'Das Quellsystem muss die URL für diesen Zugriff signieren: Die Antwort nennt den accessMode.',
  certificate_unknown: 'Das Zertifikat des Quellsystems an dieses Repository senden und aktivieren.',
  certificate_inactive: 'Den Fingerabdruck des Zertifikats vergleichen und es aktivieren.',
  document_exists: 'Nichts: Das erste Dokument ist gespeichert.',
  command_not_allowed: 'Braucht das Quellsystem mCreate, das Repository es annehmen lassen.',
  repository_inactive: 'Das Repository aktivieren.',
  address_not_allowed:
    'Die Adresse in den Einstellungen unter receiver_allowed_cidrs aufnehmen. Hinter einem Proxy muss der Betreiber des Relays RELAY_TRUST_PROXY setzen.',
  repository_not_found: 'HTTP-Skript und Namen des Repositorys mit denen im Quellsystem vergleichen, auch Groß- und Kleinschreibung.',
  document_not_found: 'Die Anfrage suchen, die das Dokument angelegt hat.',
  component_not_found: 'Die Anfrage suchen, die das Dokument angelegt hat.',
  component_offline: 'Nichts: Der Inhalt wurde nach Ablauf der Aufbewahrung entfernt.',
  document_locked: 'In der Regel nichts: Das Quellsystem wiederholt die Anfrage.',
  document_on_hold: 'Nichts, solange die Löschsperre gilt. Ist sie aufgehoben, kann die Anfrage erneut verarbeitet werden.',
  certificate_unreadable: 'Das Zertifikat erneut exportieren und mit openssl x509 ansehen.',
  certificate_too_weak: 'Im Quellsystem einen längeren Schlüssel erzeugen.',
  internal_error: 'Den Fehler mit der Anfrage-ID als Fehler des Relays melden.',
  too_many_certificates: 'Eine Minute warten. Hinter einem Proxy muss der Betreiber des Relays RELAY_TRUST_PROXY setzen.',
  rate_limited: 'Sind die Anfragen zulässig, in den Einstellungen receiver_max_requests_per_minute erhöhen.',
  unavailable: 'Datenbank oder Inhaltsspeicher wiederherstellen. Danach kann das Quellsystem die Anfrage wiederholen.',
  quota_exceeded: 'In den Einstellungen receiver_max_bytes erhöhen, oder die Aufbewahrung zugestellter Inhalte begrenzen.',
  home_failed:
    'Das Ziel wieder verfügbar machen, das Heimat des Repositorys ist, oder das Dokument dort wiederherstellen. Das Log des Relays nennt den Grund.',
  upstream_failed:
    'Den Content-Server wieder verfügbar machen, den das Repository als Vorgänger nennt, oder die Einstellung berichtigen. Die Antwort nennt den Grund.',
  loop_detected: 'Die URL des Ziels berichtigen, das zum Relay zurückführt.',
}

export const en = {
  whatToDo: 'What to do',
  /** What to do about an error with this code. */
  remedy: remedyFor,
  /** What to do about a request that was refused with this code. Undefined if the code is not one of the receiver. */
  remedyOfRefusal: (code: string): string | undefined => (isRefusalCode(code) ? refusals[code].remedy : undefined),
}

export const de: typeof en = {
  whatToDo: 'Was zu tun ist',
  remedy: (code, destination, failed) =>
    code === null && (failed === 'ended' || failed === 'group')
      ? 'Was dort noch gebraucht wird, wiederholen, den Rest quittieren.'
      : `${(actionsByCode.get(code ?? '') ?? actions[errorClassOf(code ?? '')]).replaceAll('{destination}', () => destination)}${conclusions[failed]}`,
  remedyOfRefusal: (code) => (isRefusalCode(code) ? afterRefusals[code] : undefined),
}
