export const en = {
  connections: 'These connections are deleted, and the deliveries that they hold are cancelled:',
  kept: 'These connections stay without it:',
  keep: 'Keep the connections that link others, too',
  affected: 'These destinations also lose documents, because no other connection leads to them:',
  affectedOf: (repoIds: readonly string[]) => `loses the documents of ${repoIds.join(', ')}`,
  unwired: 'These repositories have no destination from then on, and the relay discards what they receive:',
  notifications: 'These notifications are deleted:',
  failed: (count: number) =>
    `${count === 1 ? 'A failed document counts' : `${count} failed documents count`} as delivered from then on, because no other delivery has failed.`,
}

export const de: typeof en = {
  connections: 'Diese Verbindungen werden gelöscht, und von ihnen angehaltene Zustellungen werden abgebrochen:',
  kept: 'Diese Verbindungen bleiben ohne das Gelöschte bestehen:',
  keep: 'Verbindungen behalten, die noch anderes verbinden',
  affected: 'Diese Ziele verlieren ebenfalls Dokumente, weil keine andere Verbindung zu ihnen führt:',
  affectedOf: (repoIds) => `verliert die Dokumente von ${repoIds.join(', ')}`,
  unwired: 'Diese Repositories haben dann kein Ziel mehr, und das Relay verwirft, was sie empfangen:',
  notifications: 'Diese Benachrichtigungen werden gelöscht:',
  failed: (count) =>
    `${count === 1 ? 'Ein fehlgeschlagenes Dokument gilt' : `${count} fehlgeschlagene Dokumente gelten`} danach als zugestellt, weil keine andere Zustellung fehlgeschlagen ist.`,
}
