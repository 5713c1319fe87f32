export const en = {
  intro:
    'What is on hold is not removed: not by retention, not by an erasure, and the source system cannot delete it. That also applies to documents that arrive later.',
  create: 'Set a hold',
  one: 'Name a repository, a document by its repository and its id, or a business object by its type and its key.',
  fields: {
    repo_id: 'Repository',
    doc_id: 'Document id',
    erp_object_type: 'Type of the business object',
    erp_object_id: 'Key of the business object',
    reason: 'Reason',
  },
  hints: {
    doc_id: 'Empty: all documents of the repository.',
    erp_object_id: 'As documents have it. Leading zeros do not matter.',
    reason: 'Stands in the audit log: the proceedings or the audit, and who has asked for it.',
  },
  scopes: { document: 'Document', business_object: 'Business object', repository: 'Repository' },
  none: 'Nothing is on hold.',
  subject: 'On hold',
  set: 'Set',
  documents: 'Documents when set',
  isSet: (documents: number) =>
    documents === 0 ? 'The hold is set. It applies to no document yet: check what it names.' : `The hold is set. Documents: ${documents}.`,
  commandLine: 'On the command line',
  lift: 'Lift',
  liftHold: (subject: string) => `Lift the hold on ${subject}`,
  confirmLift: 'Lift the hold?',
  liftEffect: (subject: string) =>
    `What no other hold applies to can be removed again: the next run of retention removes documents of ${subject} that are past it.`,
  lifted: 'The hold has been lifted.',
  liftedHolds: 'Holds that were lifted are not listed.',
  toAudit: 'Show in the audit log',
}

export const de: typeof en = {
  intro:
    'Was gesperrt ist, wird nicht entfernt: nicht nach Ablauf der Aufbewahrung, nicht durch eine Löschung, und auch das Quellsystem kann es nicht löschen. Das gilt auch für Dokumente, die später eingehen.',
  create: 'Löschsperre setzen',
  one: 'Nennen Sie ein Repository, ein Dokument mit Repository und Dokument-ID oder ein Geschäftsobjekt mit Typ und Schlüssel.',
  fields: {
    repo_id: 'Repository',
    doc_id: 'Dokument-ID',
    erp_object_type: 'Typ des Geschäftsobjekts',
    erp_object_id: 'Schlüssel des Geschäftsobjekts',
    reason: 'Grund',
  },
  hints: {
    doc_id: 'Leer: alle Dokumente des Repositorys.',
    erp_object_id: 'Wie ihn die Dokumente haben. Führende Nullen spielen keine Rolle.',
    reason: 'Steht im Auditprotokoll: das Verfahren oder die Prüfung, und wer darum gebeten hat.',
  },
  scopes: { document: 'Dokument', business_object: 'Geschäftsobjekt', repository: 'Repository' },
  none: 'Nichts ist gesperrt.',
  subject: 'Gesperrt',
  set: 'Gesetzt',
  documents: 'Dokumente beim Setzen',
  isSet: (documents) =>
    documents === 0
      ? 'Die Löschsperre ist gesetzt. Sie betrifft noch kein Dokument: Prüfen Sie, was sie nennt.'
      : `Die Löschsperre ist gesetzt. Dokumente: ${documents}.`,
  commandLine: 'Auf der Kommandozeile',
  lift: 'Aufheben',
  liftHold: (subject) => `Löschsperre für ${subject} aufheben`,
  confirmLift: 'Löschsperre aufheben?',
  liftEffect: (subject) =>
    `Was keine andere Löschsperre betrifft, kann wieder entfernt werden: Der nächste Lauf der Aufbewahrung entfernt Dokumente, deren Frist abgelaufen ist (${subject}).`,
  lifted: 'Die Löschsperre wurde aufgehoben.',
  liftedHolds: 'Aufgehobene Löschsperren stehen nicht in der Liste.',
  toAudit: 'Im Auditprotokoll anzeigen',
}
