import { plural } from './plural.ts'

export const en = {
  intro: 'Deliveries that need an operator, by destination and error. Acknowledged documents are left out.',
  empty: 'Nothing needs attention. All deliveries have succeeded or are under way.',
  more: (shown: number, total: number) => `The ${shown} largest of ${total.toLocaleString('en')} groups are shown.`,
  failed: 'Failed',
  retrying: 'Retried for more than 15 minutes',
  retryingHint: 'Retries go on by themselves. What lasts is worth a look.',
  cancelled: 'Cancelled',
  cancelledHint:
    'A destination, a connection or the content was deleted before the documents arrived. Acknowledge documents that are not needed there.',
  deleted: 'deleted',
  documents: (count: number) => plural('en', count, 'document', 'documents'),
  oldest: 'Oldest',
  newest: 'Newest',
  lastMessage: 'Last message',
  showDocuments: 'Show documents',
  showDocumentsOf: (code: string, name: string) => `Show documents: ${code}, ${name}`,
  noCode: 'No error code',
  retryAll: 'Retry all',
  retryAllOf: (name: string) => `Retry all failed deliveries to ${name}`,
  retryGroup: (code: string, name: string) => `Retry all: ${code}, ${name}`,
  confirmTitle: 'Retry all?',
  confirmCode: (deliveries: number, documents: number, name: string, code: string) =>
    `${plural('en', deliveries, 'delivery', 'deliveries')} of ${plural('en', documents, 'document', 'documents')} to ${name} with the error ${code} will be made again, with a new budget of retries.`,
  confirm: (deliveries: number, documents: number, name: string) =>
    `${plural('en', deliveries, 'failed delivery', 'failed deliveries')} of ${plural('en', documents, 'document', 'documents')} to ${name}, whatever the error, will be made again, with a new budget of retries.`,
  running: 'Bulk retry is running',
  completed: 'Bulk retry has ended',
  wasCancelled: 'Bulk retry was cancelled',
  progress: (done: number, of: number) => `${done.toLocaleString('en')} of ${of.toLocaleString('en')} deliveries`,
  stop: 'Stop the bulk retry',
}

export const de: typeof en = {
  intro: 'Zustellungen, um die sich jemand kümmern muss, nach Ziel und Fehler. Zur Kenntnis genommene Dokumente sind ausgenommen.',
  empty: 'Kein Handlungsbedarf. Alle Zustellungen sind gelungen oder unterwegs.',
  more: (shown, total) => `Gezeigt werden die ${shown} größten von ${total.toLocaleString('de')} Gruppen.`,
  failed: 'Fehlgeschlagen',
  retrying: 'Seit mehr als 15 Minuten wiederholt',
  retryingHint: 'Die Wiederholungen laufen von selbst weiter. Was anhält, verdient einen Blick.',
  cancelled: 'Abgebrochen',
  cancelledHint:
    'Ein Ziel, eine Verbindung oder der Inhalt wurde gelöscht, bevor die Dokumente ankamen. Nehmen Sie Dokumente zur Kenntnis, die dort nicht gebraucht werden.',
  deleted: 'gelöscht',
  documents: (count) => plural('de', count, 'Dokument', 'Dokumente'),
  oldest: 'Älteste',
  newest: 'Neueste',
  lastMessage: 'Letzte Meldung',
  showDocuments: 'Dokumente anzeigen',
  showDocumentsOf: (code, name) => `Dokumente anzeigen: ${code}, ${name}`,
  noCode: 'Kein Fehlercode',
  retryAll: 'Alle wiederholen',
  retryAllOf: (name) => `Alle wiederholen: fehlgeschlagene Zustellungen an ${name}`,
  retryGroup: (code, name) => `Alle wiederholen: ${code}, ${name}`,
  confirmTitle: 'Alle wiederholen?',
  confirmCode: (deliveries, documents, name, code) =>
    `Erneut versucht, mit neuem Vorrat an Wiederholungen: ${plural('de', deliveries, 'Zustellung', 'Zustellungen')} (${plural('de', documents, 'Dokument', 'Dokumente')}) an ${name} mit dem Fehler ${code}.`,
  confirm: (deliveries, documents, name) =>
    `Erneut versucht, mit neuem Vorrat an Wiederholungen: ${plural('de', deliveries, 'fehlgeschlagene Zustellung', 'fehlgeschlagene Zustellungen')} (${plural('de', documents, 'Dokument', 'Dokumente')}) an ${name}, gleich mit welchem Fehler.`,
  running: 'Sammelwiederholung läuft',
  completed: 'Sammelwiederholung ist beendet',
  wasCancelled: 'Sammelwiederholung wurde abgebrochen',
  progress: (done, of) => `${done.toLocaleString('de')} von ${of.toLocaleString('de')} Zustellungen`,
  stop: 'Sammelwiederholung anhalten',
}
