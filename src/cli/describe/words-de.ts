import type { Words } from './words-en.ts'

const tage = (count: number) => (count === 1 ? '1 Tag' : `${count} Tage`)
const tagen = (count: number) => (count === 1 ? '1 Tag' : `${count} Tagen`)
const listOf = (items: readonly string[]) => items.join(', ')
const scopes = { document: 'das Dokument', business_object: 'das Geschäftsobjekt', repository: 'das Repository' }

/** What the process description says in German, in the words of administrators and auditors. */
export const de: Words = {
  title: (workspace) => `Verfahrensbeschreibung: Eingang und Zustellung von Dokumenten, ${workspace}`,
  made: (at, version) =>
    `Erstellt am ${at} (UTC) von Document Relay ${version} aus den zu diesem Zeitpunkt geltenden Einstellungen. Jeder Satz ergibt sich aus einer Einstellung oder aus der Arbeitsweise dieser Version. Organisatorische Regelungen, etwa zu Erfassung und Freigabe, sind nicht enthalten.`,
  none: 'Keine.',
  system: {
    heading: 'System',
    purpose:
      'Document Relay ist ein Content-Server nach dem Protokoll SAP ArchiveLink. Es nimmt Dokumente eines Quellsystems entgegen, speichert sie und stellt jedes den verbundenen Zielen zu. Der Eingang wird erst bestätigt, wenn Inhalt, geplante Zustellungen und der Nachweis der Anfrage in der Datenbank festgeschrieben sind.',
    workspace: (workspace, id) => `Diese Beschreibung betrifft den Arbeitsbereich ${workspace} der Installation ${id}.`,
    address: (url) => (url === undefined ? 'Eine öffentliche Adresse ist nicht konfiguriert.' : `Das Relay ist unter ${url} erreichbar.`),
    versions: (relay, node, database) => `Versionen: Relay ${relay}, Node.js ${node}, PostgreSQL ${database}.`,
  },
  sources: {
    heading: 'Quellen',
    addresses: (ranges) =>
      ranges.length === 0
        ? 'Das Quellsystem darf von jeder Adresse senden.'
        : `Das Quellsystem darf nur von diesen Adressen senden: ${listOf(ranges)}.`,
    repository: ({ repoId, name, isActive, signatureVerification, codePage, acceptsMcreate }) =>
      `**${repoId}** (${name}) ist ${isActive ? 'aktiv' : 'inaktiv und weist alle Anfragen ab'}. ${
        signatureVerification
          ? 'Anfragen ohne gültige Signatur eines aktiven Zertifikats werden abgewiesen.'
          : 'Signaturen werden nicht geprüft.'
      } Namen, die nicht in UTF-8 vorliegen, werden als ${codePage} gelesen. Mehrere Dokumente in einer Anfrage (mCreate) werden ${acceptsMcreate ? 'angenommen' : 'abgewiesen'}.`,
    unconnected: 'Keine Verbindung führt zu einem Ziel: Neue Dokumente werden bestätigt und verworfen, weder gespeichert noch zugestellt.',
    certificate: (subject, status, validTo, fingerprint) =>
      `Zertifikat ${subject}, ${status === 'active' ? 'aktiv' : 'inaktiv'}, gültig bis ${validTo}, SHA-256 ${fingerprint}`,
    home: (destination, count) =>
      `${tage(count)} nach der Zustellung an ${destination} wird ein Inhalt aus dem Relay entfernt und von dort gelesen.`,
    upstream: (url) => `Dokumente, die das Relay nicht hat, werden vom früheren Content-Server unter ${url} geholt und aufbewahrt.`,
  },
  storage: {
    heading: 'Speicherung',
    store: (store) => `Inhalte werden ${store} gespeichert. Zu jedem Inhalt wird der SHA-256-Hashwert gespeichert.`,
    stores: { postgres: 'in der Datenbank (PostgreSQL)', files: 'in einem Verzeichnis', s3: 'in einem Bucket' },
    small: (count) => `Inhalte unter ${count} Bytes werden stattdessen in der Datenbank gespeichert.`,
    quota: (bytes) => `Der Arbeitsbereich speichert höchstens ${bytes} Bytes; darüber hinaus werden Dokumente abgewiesen.`,
    sealing: (ids) =>
      `Gespeicherte Zugangsdaten sind mit AES-256-GCM verschlüsselt. Namen der Schlüssel, von denen der erste verschlüsselt: ${listOf(ids)}. Schlüssel und Zugangsdaten sind in dieser Beschreibung nicht enthalten.`,
  },
  connections: {
    heading: 'Verbindungen',
    connection: ({ name, isActive, repositories, destinations, pathTemplate, filter, properties, onResume }) =>
      `**${name}** ${isActive ? 'leitet' : 'ist inaktiv und hält'} Dokumente aus ${listOf(repositories)} ${isActive ? 'an' : 'für'} ${listOf(destinations)} ${isActive ? 'weiter' : 'zurück'}. ${
        filter ? `Weitergeleitet wird, was der Filter zulässt: ${filter}.` : 'Weitergeleitet wird jedes Dokument.'
      } Pfad: ${pathTemplate}.${properties.length > 0 ? ` Eigenschaften: ${listOf(properties)}.` : ''} Wird sie wieder aktiviert, ${
        onResume === 'forward' ? 'werden zurückgehaltene Dokumente zugestellt' : 'bleiben zurückgehaltene Dokumente zurückgehalten'
      }.`,
  },
  destinations: {
    heading: 'Ziele',
    destination: ({ name, type, config }) => `**${name}** ist ein Ziel der Art ${type}${config.length > 0 ? ` (${listOf(config)})` : ''}.`,
    home: 'Die Inhalte, die das Relay dorthin verlassen haben, hat nur dieses Ziel; sie werden von dort gelesen.',
    retention: ({ retention, legalHold }) =>
      [
        ...(retention
          ? [
              `Das Ziel muss jedes Dokument ${retention.until ? `bis ${retention.until}` : ''}${retention.until && retention.days !== undefined ? ', sonst ' : ''}${retention.days === undefined ? '' : `${tage(retention.days)} ab dem Eingang`} aufbewahren (Art ${retention.mode}).`,
            ]
          : []),
        ...(legalHold ? ['Jedes Dokument erhält dort eine Löschsperre.'] : []),
      ].join(' '),
  },
  enrichments: {
    heading: 'Geschäftsdaten',
    bridge: (url, functions) => `Das Relay darf diese Funktionen des Quellsystems unter ${url} aufrufen: ${listOf(functions)}.`,
    noBridge: 'Das Relay ruft keine Funktionen des Quellsystems auf.',
    enrichment: ({ name, isActive, repositories, waitSeconds, lateDays, steps }) =>
      `**${name}** ${isActive ? 'ermittelt' : 'ist inaktiv und ermittelte'} Geschäftsdaten für ${listOf(repositories)} in diesen Schritten: ${listOf(steps)}. Zustellungen warten darauf höchstens ${waitSeconds} Sekunden; was innerhalb von ${tagen(lateDays)} gefunden wird, wird zu den Kopien nachgetragen.`,
  },
  delivery: {
    heading: 'Zustellung und Fehler',
    retries: (retries, ttlSeconds, first, longest) =>
      `Eine fehlgeschlagene Zustellung wird höchstens ${retries}-mal innerhalb von ${ttlSeconds} Sekunden wiederholt, zuerst nach ${first} Sekunden und spätestens ${longest} Sekunden nach dem vorigen Versuch. Danach gilt sie als fehlgeschlagen und bleibt in der Fehlerliste, bis eine Person sie wiederholt oder quittiert.`,
    receipt: 'Zu jeder Zustellung wird ein Beleg aufbewahrt: der Hashwert des Gesendeten, der Zeitpunkt und die Kennung im Ziel.',
    notification: (name, events, destination) => `Die Benachrichtigung **${name}** meldet ${listOf(events)} an ${destination}.`,
  },
  retention: {
    heading: 'Aufbewahrung und Löschung',
    content: (count) =>
      count === null
        ? 'Das Relay entfernt keinen Inhalt wegen seines Alters.'
        : `Der Inhalt eines abschließend bearbeiteten Dokuments wird ${tage(count)} nach dem Eingang entfernt.`,
    homes: 'Einen Inhalt, der das Relay verlassen hat, bewahrt allein sein Ziel auf, das auch die Dauer bestimmt.',
    documents: (count) =>
      count === 0
        ? 'Die Nachweise über Dokumente und Zustellungen werden unbefristet aufbewahrt.'
        : `Die Nachweise über ein abschließend bearbeitetes Dokument und seine Zustellungen werden ${tage(count)} nach dem Eingang entfernt, wenn es keinen Inhalt mehr hat.`,
    attempts: (count) => `Aufzeichnungen einzelner Versuche werden nach ${tagen(count)} entfernt. Belege bleiben.`,
    requests: (requests, bodies) => `Aufgezeichnete Anfragen werden nach ${tagen(requests)} entfernt, ihre Inhalte nach ${tagen(bodies)}.`,
    events: (count) =>
      count === 0
        ? 'Ereignisse für andere Programme werden nicht geschrieben.'
        : `Ereignisse für andere Programme werden ${tage(count)} aufbewahrt.`,
    erasure: 'Administratoren können den Inhalt eines Dokuments löschen. Das Auditprotokoll weist es nach.',
    source:
      'Löscht das Quellsystem ein Dokument, kann es das Dokument nicht mehr lesen. Das Relay bewahrt den Inhalt auf wie oben beschrieben, und Kopien in den Zielen bleiben.',
  },
  holds: {
    heading: 'Löschsperren',
    rule: 'Solange eine Löschsperre gesetzt ist, entfernen weder der Ablauf der Aufbewahrung noch eine Löschung noch das Quellsystem, was sie betrifft.',
    more: (count) => `Ältere Löschsperren, die hier nicht aufgeführt sind: ${count}.`,
    hold: ({ scope, subject, reason, setAt, setBy }) =>
      `Seit ${setAt} ist ${scopes[scope]} ${subject} gesperrt: ${reason} (gesetzt von ${setBy ?? 'einem Betreiber auf der Kommandozeile'}).`,
  },
  proof: {
    heading: 'Protokolle und Nachweise',
    audit: (count) =>
      `Das Auditprotokoll weist jede Änderung der Konfiguration und jede Änderung eines Dokuments durch eine Person nach, in derselben Transaktion wie die Änderung. Seine Einträge werden ${count === null ? 'unbefristet' : tage(count)} aufbewahrt.`,
    manifest: (fingerprint) =>
      `Für jeden Tag (UTC) führt ein signiertes Manifest die eingegangenen Dokumente und ihren Verbleib auf; jedes nennt den Hashwert des vorigen. ${
        fingerprint === undefined
          ? 'Ein Manifest wurde noch nicht erstellt, es gibt daher noch keinen Schlüssel.'
          : `SHA-256 des Zertifikats, mit dem es geprüft wird: ${fingerprint}.`
      }`,
    stamp: (url) =>
      url === undefined ? 'Manifeste haben keinen Zeitstempel.' : `Jedes Manifest erhält einen Zeitstempel (RFC 3161) von ${url}.`,
    copies: (destinations) =>
      destinations.length === 0
        ? 'Kein Ziel erhält die Manifeste.'
        : `Diese Ziele erhalten eine Kopie jedes Manifests: ${listOf(destinations)}.`,
  },
  access: {
    heading: 'Zugriff',
    levels:
      'Betrachter lesen; Mitglieder ändern außerdem die Konfiguration und wiederholen Zustellungen; Administratoren löschen außerdem, setzen Löschsperren und verwalten Schlüssel.',
    signIn: (issuer) =>
      issuer === undefined
        ? 'Personen melden sich mit API-Schlüsseln an: Ein OpenID-Anbieter ist nicht konfiguriert.'
        : `Personen melden sich über den OpenID-Anbieter ${issuer} oder mit API-Schlüsseln an.`,
    people: (claim, value, level) => `Personen, deren Claim ${claim} den Wert **${value}** hat, Stufe ${level}`,
    key: (name, level, expiresAt) =>
      `API-Schlüssel **${name}**, Stufe ${level}, ${expiresAt === undefined ? 'unbefristet' : `gültig bis ${expiresAt}`}`,
  },
  operation: {
    heading: 'Sicherung und Wiederherstellung',
    backup:
      'Für eine Wiederherstellung müssen Datenbank und Inhaltsspeicher gemeinsam gesichert sein, wie es die Dokumentation des Relays beschreibt (backup.md).',
    restoreTest: (day) =>
      day === undefined
        ? 'Letzter Test der Wiederherstellung: nicht dokumentiert.'
        : `Letzter Test der Wiederherstellung nach Angabe des Betreibers: ${day}.`,
  },
}
