import { plural } from './plural.ts'

export const en = {
  title: 'Certificates',
  intro:
    'Signatures are verified with the active certificates. A certificate that the source system sends is inactive until an administrator has compared its fingerprint.',
  empty: 'There is no certificate yet.',
  statuses: { active: 'Active', inactive: 'Inactive' },
  subject: 'Subject',
  issuer: 'Issuer',
  serial: 'Serial number',
  key: 'Key',
  bits: (count: number) => plural('en', count, 'bit', 'bits'),
  valid: 'Valid',
  range: (from: string, to: string) => `${from} to ${to}`,
  daysLeft: (days: number) => plural('en', days, 'day left', 'days left'),
  ended: 'ended',
  received: 'Received',
  expiring: 'The validity ends soon. Let the source system send its new certificate, compare it and activate it.',
  warnings: {
    short_key: 'The key is shorter than recommended today (2,048 bits; elliptic curve: 224).',
    md5: 'The certificate is signed with MD5 or MD2, which can be forged. Compare the SHA-256 fingerprint.',
    expired: 'The validity has ended. Signatures are accepted nevertheless.',
  },
  compare: 'Compare with a fingerprint of the source system',
  compareOf: (name: string) => `Compare the certificate of ${name} with a fingerprint of the source system`,
  comparePlaceholder: 'Paste it from STRUST',
  comparison: {
    incomplete: 'This is not a whole fingerprint: SHA-1 has 40 digits, SHA-256 has 64.',
    md5: 'This is an MD5 fingerprint, which proves too little. Export the certificate and compute SHA-256: openssl x509 -noout -fingerprint -sha256',
    equal: 'Equal: this is the certificate of the source system.',
    different: 'Different: this is another certificate. Do not activate it.',
  },
  activate: 'Activate',
  deactivate: 'Deactivate',
  remove: 'Delete',
  of: (action: string, name: string) => `${action}: certificate of ${name}`,
  activateTitle: (name: string) => `Activate the certificate of ${name}?`,
  activateText:
    'Requests that are signed with this key are then accepted. Anybody can send a certificate: activate it only if this fingerprint equals the one that STRUST shows in the source system.',
  deactivateTitle: (name: string) => `Deactivate the certificate of ${name}?`,
  deactivateText: 'Requests that are signed with this key are then refused with 401, if the repository requires signatures.',
  deleteTitle: (name: string) => `Delete the certificate of ${name}?`,
  deleteText: 'If the source system sends it again, it is added as inactive.',
  lastActive:
    'It is the last active certificate, and the repository requires signatures: the source system can then neither store nor display documents.',
  deleteInactive: 'Delete inactive certificates',
  deleteInactiveTitle: 'Delete all inactive certificates?',
  deleteInactiveText: (count: number) =>
    `${plural('en', count, 'certificate is', 'certificates are')} deleted. The source system can send its own again.`,
  add: 'Add a certificate',
  addHint: 'For a source system that cannot send its certificate.',
  fields: {
    auth_id: 'Name of the signer (authId)',
    certificate: 'Certificate',
  },
  hints: {
    auth_id: 'As in the signed URLs, character by character, without percent-encoding: CN=TST',
    certificate: 'PEM, or base64 of DER or PKCS #7',
  },
  file: 'Or choose a file',
}

export const de: typeof en = {
  title: 'Zertifikate',
  intro:
    'Signaturen werden mit den aktiven Zertifikaten geprüft. Ein Zertifikat, das das Quellsystem sendet, ist inaktiv, bis ein Administrator den Fingerabdruck verglichen hat.',
  empty: 'Es gibt noch kein Zertifikat.',
  statuses: { active: 'Aktiv', inactive: 'Inaktiv' },
  subject: 'Inhaber',
  issuer: 'Aussteller',
  serial: 'Seriennummer',
  key: 'Schlüssel',
  bits: (count) => `${count.toLocaleString('de')} Bit`,
  valid: 'Gültig',
  range: (from, to) => `${from} bis ${to}`,
  daysLeft: (days) => `noch ${plural('de', days, 'Tag', 'Tage')}`,
  ended: 'abgelaufen',
  received: 'Empfangen',
  expiring: 'Die Gültigkeit endet bald. Lassen Sie das Quellsystem sein neues Zertifikat senden, vergleichen und aktivieren Sie es.',
  warnings: {
    short_key: 'Der Schlüssel ist kürzer als heute empfohlen (2.048 Bit; elliptische Kurve: 224).',
    md5: 'Das Zertifikat ist mit MD5 oder MD2 signiert, was sich fälschen lässt. Vergleichen Sie den SHA-256-Fingerabdruck.',
    expired: 'Die Gültigkeit ist abgelaufen. Signaturen werden dennoch angenommen.',
  },
  compare: 'Mit einem Fingerabdruck des Quellsystems vergleichen',
  compareOf: (name) => `Zertifikat von ${name} mit einem Fingerabdruck des Quellsystems vergleichen`,
  comparePlaceholder: 'Aus STRUST einfügen',
  comparison: {
    incomplete: 'Kein vollständiger Fingerabdruck: SHA-1 hat 40 Ziffern, SHA-256 hat 64.',
    md5: 'Ein MD5-Fingerabdruck beweist zu wenig. Exportieren Sie das Zertifikat und berechnen Sie SHA-256: openssl x509 -noout -fingerprint -sha256',
    equal: 'Gleich: Dies ist das Zertifikat des Quellsystems.',
    different: 'Verschieden: Dies ist ein anderes Zertifikat. Aktivieren Sie es nicht.',
  },
  activate: 'Aktivieren',
  deactivate: 'Deaktivieren',
  remove: 'Löschen',
  of: (action, name) => `${action}: Zertifikat von ${name}`,
  activateTitle: (name) => `Zertifikat von ${name} aktivieren?`,
  activateText:
    'Anfragen, die mit diesem Schlüssel signiert sind, werden dann angenommen. Ein Zertifikat kann jeder senden: Aktivieren Sie es nur, wenn dieser Fingerabdruck dem gleicht, den STRUST im Quellsystem anzeigt.',
  deactivateTitle: (name) => `Zertifikat von ${name} deaktivieren?`,
  deactivateText:
    'Anfragen, die mit diesem Schlüssel signiert sind, werden dann mit 401 abgewiesen, falls das Repository Signaturen verlangt.',
  deleteTitle: (name) => `Zertifikat von ${name} löschen?`,
  deleteText: 'Sendet das Quellsystem es erneut, wird es als inaktiv aufgenommen.',
  lastActive:
    'Es ist das letzte aktive Zertifikat, und das Repository verlangt Signaturen: Das Quellsystem kann dann keine Dokumente mehr ablegen oder anzeigen.',
  deleteInactive: 'Inaktive Zertifikate löschen',
  deleteInactiveTitle: 'Alle inaktiven Zertifikate löschen?',
  deleteInactiveText: (count) =>
    `${plural('de', count, 'Zertifikat wird', 'Zertifikate werden')} gelöscht. Das Quellsystem kann sein eigenes erneut senden.`,
  add: 'Zertifikat hinzufügen',
  addHint: 'Für ein Quellsystem, das sein Zertifikat nicht senden kann.',
  fields: {
    auth_id: 'Name des Unterzeichners (authId)',
    certificate: 'Zertifikat',
  },
  hints: {
    auth_id: 'Wie in den signierten URLs, Zeichen für Zeichen, ohne Prozentkodierung: CN=TST',
    certificate: 'PEM, oder base64 von DER oder PKCS #7',
  },
  file: 'Oder eine Datei wählen',
}
