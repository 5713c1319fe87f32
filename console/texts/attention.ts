import { plural } from './plural.ts'

export const en = {
  intro:
    'Deliveries that need an operator, by destination and error, and documents that were discarded, by repository. Acknowledged documents are left out.',
  empty: 'Nothing needs attention. All deliveries have succeeded or are under way.',
  more: (shown: number, total: number) => `The ${shown} largest of ${total.toLocaleString('en')} groups are shown.`,
  failed: 'Failed',
  retrying: 'Retried for more than 15 minutes',
  retryingHint: 'The relay retries these deliveries by itself. Check the targets that have failed for long.',
  cancelled: 'Cancelled',
  cancelledHint:
    'A destination, a connection or the content was deleted before the documents arrived. Acknowledge documents that are not needed there.',
  deleted: 'deleted',
  deliveries: (count: number) => plural('en', count, 'delivery', 'deliveries'),
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
  discarded: 'Discarded',
  discardedHint:
    'These documents were acknowledged to the source system and forwarded to nobody, because no connection led from their repository to a destination.',
  discardedOf: (repoId: string) => `Repository ${repoId}`,
  notConnected: 'No connection leads to a destination. What the repository receives is discarded.',
  nowConnected: 'The repository is connected now. Replay the requests of these documents, or acknowledge them if they are not needed.',
  repositoryDeleted: 'The repository was deleted.',
  connect: 'Create a connection',
  replayAll: 'Replay their requests',
  acknowledgeAll: 'Acknowledge all',
  showDiscardedOf: (repoId: string) => `Show documents: discarded, ${repoId}`,
  confirmTitles: { retry: 'Retry all?', replay: 'Replay their requests?', acknowledge: 'Acknowledge all?', deliver: 'Deliver again?' },
  confirmActions: { retry: 'Retry all', replay: 'Replay their requests', acknowledge: 'Acknowledge all', deliver: 'Deliver again' },
  confirmAgain: (count: number, name: string) =>
    `${plural('en', count, 'document', 'documents')} that ${name} has will be delivered there once more, and marked as delivered again. A target that stores by name overwrites; others may keep both.`,
  confirmDiscarded: {
    replay: (count: number, repoId: string) =>
      `The relay processes the requests of ${plural('en', count, 'discarded document', 'discarded documents')} of ${repoId} again, as if they arrived now. Each replay is captured and recorded in the audit log.`,
    acknowledge: (count: number, repoId: string) =>
      `${plural('en', count, 'discarded document', 'discarded documents')} of ${repoId} will no longer need attention. They are not delivered.`,
  },
  confirmCode: (deliveries: number, documents: number, name: string, code: string) =>
    `${plural('en', deliveries, 'delivery', 'deliveries')} of ${plural('en', documents, 'document', 'documents')} to ${name} with the error ${code} will be made again, with a new budget of retries.`,
  confirm: (deliveries: number, documents: number, name: string) =>
    `${plural('en', deliveries, 'failed delivery', 'failed deliveries')} of ${plural('en', documents, 'document', 'documents')} to ${name}, whatever the error, will be made again, with a new budget of retries.`,
  running: 'Bulk retries',
  bulk: {
    retry: { running: 'Bulk retry is running', completed: 'Bulk retry has ended', cancelled: 'Bulk retry was cancelled' },
    replay: { running: 'Bulk replay is running', completed: 'Bulk replay has ended', cancelled: 'Bulk replay was cancelled' },
    acknowledge: {
      running: 'Documents are being acknowledged',
      completed: 'Documents have been acknowledged',
      cancelled: 'Acknowledging was cancelled',
    },
    deliver: { running: 'Bulk delivery is running', completed: 'Bulk delivery has ended', cancelled: 'Bulk delivery was cancelled' },
  },
  documentProgress: (done: number, of: number) => `${done.toLocaleString('en')} of ${of.toLocaleString('en')} documents`,
  skipped: {
    replay: (count: number) =>
      `${plural('en', count, 'document is', 'documents are')} left: the replay was refused, or the request or its body is no longer stored. The source system has to send them again.`,
    deliver: (count: number) =>
      `${plural('en', count, 'document is', 'documents are')} left out: no filter of a connection selects them, or they were replaced, deleted or planned meanwhile.`,
  },
  progress: (done: number, of: number) => `${done.toLocaleString('en')} of ${of.toLocaleString('en')} deliveries`,
  outcome: (delivered: number, failed: number, open: number, isRetry: boolean) =>
    `${plural('en', delivered, 'delivery has', 'deliveries have')} arrived, ${failed.toLocaleString('en')} failed${isRetry ? ' again' : ''}, ${open.toLocaleString('en')} open.`,
  stop: 'Stop',
}

export const de: typeof en = {
  intro:
    'Zustellungen, um die sich jemand kümmern muss, nach Ziel und Fehler, und verworfene Dokumente, nach Repository. Quittierte Dokumente sind ausgenommen.',
  empty: 'Kein Handlungsbedarf. Alle Zustellungen sind gelungen oder unterwegs.',
  more: (shown, total) => `Gezeigt werden die ${shown} größten von ${total.toLocaleString('de')} Gruppen.`,
  failed: 'Fehlgeschlagen',
  retrying: 'Seit mehr als 15 Minuten wiederholt',
  retryingHint: 'Das Relay wiederholt diese Zustellungen selbst. Prüfen Sie Ziele, die schon lange gestört sind.',
  cancelled: 'Abgebrochen',
  cancelledHint:
    'Ein Ziel, eine Verbindung oder der Inhalt wurde gelöscht, bevor die Dokumente ankamen. Quittieren Sie Dokumente, die dort nicht gebraucht werden.',
  deleted: 'gelöscht',
  deliveries: (count) => plural('de', count, 'Zustellung', 'Zustellungen'),
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
  discarded: 'Verworfen',
  discardedHint:
    'Diese Dokumente wurden dem Quellsystem bestätigt und an niemanden weitergeleitet, weil von ihrem Repository keine Verbindung zu einem Ziel führte.',
  discardedOf: (repoId) => `Repository ${repoId}`,
  notConnected: 'Keine Verbindung führt zu einem Ziel. Was das Repository empfängt, wird verworfen.',
  nowConnected:
    'Das Repository ist jetzt verbunden. Verarbeiten Sie die Anfragen dieser Dokumente erneut, oder quittieren Sie die Dokumente, wenn sie nicht gebraucht werden.',
  repositoryDeleted: 'Das Repository wurde gelöscht.',
  connect: 'Verbindung anlegen',
  replayAll: 'Anfragen erneut verarbeiten',
  acknowledgeAll: 'Alle quittieren',
  showDiscardedOf: (repoId) => `Dokumente anzeigen: verworfen, ${repoId}`,
  confirmTitles: {
    retry: 'Alle wiederholen?',
    replay: 'Anfragen erneut verarbeiten?',
    acknowledge: 'Alle quittieren?',
    deliver: 'Erneut zustellen?',
  },
  confirmActions: {
    retry: 'Alle wiederholen',
    replay: 'Anfragen erneut verarbeiten',
    acknowledge: 'Alle quittieren',
    deliver: 'Erneut zustellen',
  },
  confirmAgain: (count, name) =>
    `Noch einmal an ${name} zugestellt und als erneut zugestellt gekennzeichnet: ${plural('de', count, 'Dokument', 'Dokumente')}. Ein Ziel, das nach Namen ablegt, überschreibt; andere behalten womöglich beide.`,
  confirmDiscarded: {
    replay: (count, repoId) =>
      `Das Relay verarbeitet die Anfragen von ${plural('de', count, 'verworfenem Dokument', 'verworfenen Dokumenten')} aus ${repoId} noch einmal, als träfen sie jetzt ein. Jede Wiederholung wird aufgezeichnet und steht im Auditprotokoll.`,
    acknowledge: (count, repoId) =>
      `Kein Handlungsbedarf mehr für ${plural('de', count, 'verworfenes Dokument', 'verworfene Dokumente')} aus ${repoId}. Zugestellt wird nichts.`,
  },
  confirmCode: (deliveries, documents, name, code) =>
    `Erneut versucht, mit neuem Vorrat an Wiederholungen: ${plural('de', deliveries, 'Zustellung', 'Zustellungen')} (${plural('de', documents, 'Dokument', 'Dokumente')}) an ${name} mit dem Fehler ${code}.`,
  confirm: (deliveries, documents, name) =>
    `Erneut versucht, mit neuem Vorrat an Wiederholungen: ${plural('de', deliveries, 'fehlgeschlagene Zustellung', 'fehlgeschlagene Zustellungen')} (${plural('de', documents, 'Dokument', 'Dokumente')}) an ${name}, gleich mit welchem Fehler.`,
  running: 'Sammelvorgänge',
  bulk: {
    retry: {
      running: 'Sammelwiederholung läuft',
      completed: 'Sammelwiederholung ist beendet',
      cancelled: 'Sammelwiederholung wurde abgebrochen',
    },
    replay: {
      running: 'Anfragen werden erneut verarbeitet',
      completed: 'Erneute Verarbeitung ist beendet',
      cancelled: 'Erneute Verarbeitung wurde abgebrochen',
    },
    acknowledge: {
      running: 'Dokumente werden quittiert',
      completed: 'Dokumente wurden quittiert',
      cancelled: 'Quittieren wurde abgebrochen',
    },
    deliver: {
      running: 'Nachträgliche Zustellung läuft',
      completed: 'Nachträgliche Zustellung ist beendet',
      cancelled: 'Nachträgliche Zustellung wurde abgebrochen',
    },
  },
  documentProgress: (done, of) => `${done.toLocaleString('de')} von ${of.toLocaleString('de')} Dokumenten`,
  skipped: {
    replay: (count) =>
      `${plural('de', count, 'Dokument ist', 'Dokumente sind')} übrig: Die Wiederholung wurde abgewiesen, oder die Anfrage oder ihr Body ist nicht mehr gespeichert. Das Quellsystem muss sie erneut senden.`,
    deliver: (count) =>
      `${plural('de', count, 'Dokument ist', 'Dokumente sind')} ausgelassen: Kein Filter einer Verbindung wählt sie aus, oder sie wurden inzwischen ersetzt, gelöscht oder eingeplant.`,
  },
  progress: (done, of) => `${done.toLocaleString('de')} von ${of.toLocaleString('de')} Zustellungen`,
  outcome: (delivered, failed, open, isRetry) =>
    `${plural('de', delivered, 'Zustellung ist', 'Zustellungen sind')} angekommen, ${failed.toLocaleString('de')} ${isRetry ? 'erneut ' : ''}fehlgeschlagen, ${open.toLocaleString('de')} offen.`,
  stop: 'Anhalten',
}
