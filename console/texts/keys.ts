export const en = {
  intro: 'A key signs a person in to the console, or a program in to the API. Give each of them a key of its own: the audit log names it.',
  create: 'Create a key',
  fields: {
    name: 'Name',
    level: 'Level',
    expires_at: 'Valid until',
  },
  hints: {
    name: 'Says whose key it is, for example: Console of Jane Doe.',
    expires_at: 'Until the end of this day. Empty: until it is revoked.',
  },
  choices: {
    level: {
      viewer: 'Viewer: reads everything but keys',
      member: 'Member: also creates and changes destinations, repositories and connections, and retries documents',
      admin: 'Administrator: also deletes, replays requests, manages certificates, keys and settings',
    },
  },
  levelNames: { viewer: 'Viewer', member: 'Member', admin: 'Administrator' },
  inThePast: 'The day is in the past.',
  createdTitle: (name: string) => `Key ${name} has been created`,
  copyNow: 'Copy the key now. It is shown this once, and the relay stores only its digest.',
  done: 'I have stored it',
  key: 'Key',
  created: 'Created',
  lastUsed: 'Last used',
  never: 'Unlimited',
  neverUsed: 'Not yet',
  expired: 'Expired',
  own: 'This session',
  member: (id: string) => `Member ${id}`,
  revoke: 'Revoke',
  revokeKey: (name: string) => `Revoke the key ${name}`,
  confirmRevoke: 'Revoke the key?',
  revokeEffect: (name: string) =>
    `${name} is refused from the next request on, and its sessions in the console end. This cannot be undone.`,
  revokeOwn: 'You are signed in with this key. You are signed out at once, and need another key to sign in again.',
  revoked: 'The key has been revoked.',
  revokedKeys: 'Revoked keys are not listed.',
  toAudit: 'Show in the audit log',
}

export const de: typeof en = {
  intro:
    'Mit einem Schlüssel meldet sich eine Person an der Konsole oder ein Programm an der API an. Geben Sie jedem einen eigenen: Das Auditprotokoll nennt ihn.',
  create: 'Schlüssel erstellen',
  fields: {
    name: 'Name',
    level: 'Stufe',
    expires_at: 'Gültig bis',
  },
  hints: {
    name: 'Sagt, wem der Schlüssel gehört, zum Beispiel: Konsole von Erika Muster.',
    expires_at: 'Bis zum Ende dieses Tages. Leer: bis er widerrufen wird.',
  },
  choices: {
    level: {
      viewer: 'Betrachter: liest alles außer Schlüsseln',
      member: 'Mitglied: legt auch Ziele, Repositories und Verbindungen an, ändert sie und wiederholt Dokumente',
      admin: 'Administrator: löscht auch, verarbeitet Anfragen erneut und verwaltet Zertifikate, Schlüssel und Einstellungen',
    },
  },
  levelNames: { viewer: 'Betrachter', member: 'Mitglied', admin: 'Administrator' },
  inThePast: 'Der Tag liegt in der Vergangenheit.',
  createdTitle: (name) => `Schlüssel ${name} wurde erstellt`,
  copyNow: 'Kopieren Sie den Schlüssel jetzt. Er wird nur dieses eine Mal angezeigt, das Relay speichert nur seinen Hashwert.',
  done: 'Ich habe ihn gesichert',
  key: 'Schlüssel',
  created: 'Erstellt',
  lastUsed: 'Zuletzt benutzt',
  never: 'Unbefristet',
  neverUsed: 'Noch nie',
  expired: 'Abgelaufen',
  own: 'Diese Sitzung',
  member: (id) => `Mitglied ${id}`,
  revoke: 'Widerrufen',
  revokeKey: (name) => `Schlüssel ${name} widerrufen`,
  confirmRevoke: 'Schlüssel widerrufen?',
  revokeEffect: (name) =>
    `${name} wird ab der nächsten Anfrage abgewiesen, und seine Sitzungen in der Konsole enden. Das lässt sich nicht rückgängig machen.`,
  revokeOwn:
    'Sie sind mit diesem Schlüssel angemeldet. Sie werden sofort abgemeldet und brauchen einen anderen, um sich wieder anzumelden.',
  revoked: 'Der Schlüssel wurde widerrufen.',
  revokedKeys: 'Widerrufene Schlüssel stehen nicht in der Liste.',
  toAudit: 'Im Auditprotokoll anzeigen',
}
