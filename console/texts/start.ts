export const en = {
  intro: 'Four steps lead from an empty workspace to the first document that arrives.',
  done: 'Done',
  open: 'Not done yet',
  mayNot: 'Your key may only read. A key of the level Member can take these steps.',
  steps: {
    destination: 'Create a destination',
    repository: 'Create a repository',
    connection: 'Connect the repository to the destination',
    document: 'Send a test document',
  },
  hints: {
    destination: 'Where documents are delivered to, for example an object storage, a mail box or a web address.',
    repository: 'A repository stands for a content repository of the source system. Documents enter the relay through it.',
    connection: 'A connection decides which documents of a repository go to which destinations.',
    document:
      'The relay stores a small PDF as if the source system had sent it, and delivers it to every connected destination. It stays in the repository until its content is erased.',
  },
  repository: 'Repository',
  send: (repoId: string) => `Send a test document to ${repoId}`,
  sending: 'Sending',
  sent: 'The relay has stored the test document.',
  newest: 'Newest document',
  arrived: 'The document has arrived at every destination.',
  source: 'Now set up the source system. The page of the repository shows the values to enter.',
  toRepository: 'Show the repository',
  toOverview: 'Go to the overview',
}

export const de: typeof en = {
  intro: 'Vier Schritte führen vom leeren Arbeitsbereich zum ersten Dokument, das ankommt.',
  done: 'Erledigt',
  open: 'Noch nicht erledigt',
  mayNot: 'Ihr Schlüssel darf nur lesen. Diese Schritte kann ein Schlüssel der Stufe Mitglied ausführen.',
  steps: {
    destination: 'Ziel anlegen',
    repository: 'Repository anlegen',
    connection: 'Repository mit dem Ziel verbinden',
    document: 'Testdokument senden',
  },
  hints: {
    destination: 'Wohin Dokumente zugestellt werden, zum Beispiel ein Objektspeicher, ein Postfach oder eine Webadresse.',
    repository: 'Ein Repository steht für ein Content-Repository des Quellsystems. Darüber gelangen Dokumente in das Relay.',
    connection: 'Eine Verbindung bestimmt, welche Dokumente eines Repositorys an welche Ziele gehen.',
    document:
      'Das Relay speichert ein kleines PDF, als hätte das Quellsystem es gesendet, und stellt es jedem verbundenen Ziel zu. Es bleibt im Repository, bis sein Inhalt gelöscht wird.',
  },
  repository: 'Repository',
  send: (repoId) => `Testdokument an ${repoId} senden`,
  sending: 'Wird gesendet',
  sent: 'Das Relay hat das Testdokument gespeichert.',
  newest: 'Neuestes Dokument',
  arrived: 'Das Dokument ist bei jedem Ziel angekommen.',
  source: 'Richten Sie nun das Quellsystem ein. Die Seite des Repositorys zeigt die einzugebenden Werte.',
  toRepository: 'Repository anzeigen',
  toOverview: 'Zur Übersicht',
}
