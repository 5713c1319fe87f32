export const en = {
  intro:
    'A notification announces incidents of this workspace to a mailbox or a webhook: one notice when an incident begins, and one when it has ended.',
  create: 'Create a notification',
  back: 'All notifications',
  empty: 'No notification has been created yet. Nobody is told when a delivery fails.',
  fields: {
    name: 'Name',
    events: 'Incidents',
    destination_id: 'Destination',
    quiet_seconds: 'Quiet time',
    silence_hours: 'Silence of a source',
    is_active: 'Active',
  },
  hints: {
    events: 'At least one. Each is announced at its beginning and at its end.',
    destination_id:
      'A destination of the kind E-mail or Webhook. Use one that no connection leads to, unless it should get the documents, too.',
    quiet_seconds:
      'After a notice, no other incident of the same subject is announced for this long. One that is still open afterwards is announced then.',
    silence_hours: 'A repository that has received no request for this long is announced. Choose more than a usual night or weekend.',
    is_active: 'A notification that is switched off announces nothing.',
  },
  choices: {
    events: {
      'destination.failing': 'Destination failing',
      'delivery.failed': 'Deliveries failed',
      'source.silent': 'Source system silent',
      'source.refused': 'Source system refused',
      'certificate.expiring': 'Certificate expiring',
      'repository.not_connected': 'Repository not connected',
      'connection.holding': 'Connection holding deliveries',
      'enrichment.failing': 'Enrichment failing',
      'upstream.failing': 'Earlier content server failing',
      'content.altered': 'Content altered at its home',
      'event_subscription.failing': 'Event subscription failing',
    },
  },
  choiceHints: {
    events: {
      'destination.failing': 'Attempts fail one after the other, or the circuit is open.',
      'delivery.failed': 'Deliveries have failed for good, and nobody has retried or acknowledged them.',
      'source.silent': 'Nothing has come from the source system for as long as is set below.',
      'source.refused': 'The latest requests of the source system to a repository were all refused.',
      'certificate.expiring':
        'A certificate expires soon: one that verifies signatures, and no newer one is active, or the client certificate of a destination.',
      'repository.not_connected': 'Documents are discarded, because no connection leads to a destination.',
      'connection.holding': 'An inactive connection has held deliveries for 24 hours.',
      'upstream.failing':
        'The earlier content server of a repository has failed for 5 minutes. Documents that only it has, and new ones, are answered with 503.',
      'content.altered':
        'A destination that alone has contents does not have some of them any more, or has other bytes. Reads of these documents are answered with 503.',
      'event_subscription.failing':
        'The receiver of an event subscription has not accepted the next event for 15 minutes, or has answered 410 and so stopped the subscription.',
      'enrichment.failing': 'The latest documents of an enrichment lack their business data. They are delivered nevertheless.',
    },
  },
  noDestinations: 'There is no destination of the kind E-mail or Webhook. Create one first.',
  status: 'Status',
  inactive: 'Switched off',
  test: 'Send a test',
  testing: 'Sending',
  testOk: 'The test message was sent.',
  testFailed: 'The test message could not be sent.',
  testFailedOf: 'The test message could not be sent:',
  notices: 'Notices',
  noNotices: 'Nothing has been announced yet.',
  notice: 'Notice',
  time: 'Time',
  attempts: 'Attempts',
  nextAttempt: 'next attempt',
  confirmDelete: 'Delete the notification?',
  deleteEffect: (name: string) => `${name} announces nothing any more. Notices that have not been delivered yet are deleted with it.`,
  noticeStatus: { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' },
}

export const de: typeof en = {
  intro:
    'Eine Benachrichtigung meldet Vorfälle dieses Arbeitsbereichs an ein Postfach oder einen Webhook: eine Meldung bei Beginn, eine am Ende.',
  create: 'Benachrichtigung anlegen',
  back: 'Alle Benachrichtigungen',
  empty: 'Noch keine Benachrichtigung angelegt. Niemand erfährt, wenn eine Zustellung fehlschlägt.',
  fields: {
    name: 'Name',
    events: 'Vorfälle',
    destination_id: 'Ziel',
    quiet_seconds: 'Ruhezeit',
    silence_hours: 'Stille einer Quelle',
    is_active: 'Aktiv',
  },
  hints: {
    events: 'Mindestens einer. Jeder wird bei Beginn und am Ende gemeldet.',
    destination_id:
      'Ein Ziel der Art E-Mail oder Webhook. Nehmen Sie eines, zu dem keine Verbindung führt, außer es soll auch die Dokumente bekommen.',
    quiet_seconds:
      'So lange wird nach einer Meldung kein weiterer Vorfall desselben Gegenstands gemeldet. Einer, der danach noch besteht, wird dann gemeldet.',
    silence_hours:
      'Ein Repository, das so lange keine Anfrage erhalten hat, wird gemeldet. Wählen Sie mehr als eine übliche Nacht oder ein Wochenende.',
    is_active: 'Eine ausgeschaltete Benachrichtigung meldet nichts.',
  },
  choices: {
    events: {
      'destination.failing': 'Ziel gestört',
      'delivery.failed': 'Zustellungen fehlgeschlagen',
      'source.silent': 'Quellsystem stumm',
      'source.refused': 'Quellsystem abgewiesen',
      'certificate.expiring': 'Zertifikat läuft ab',
      'repository.not_connected': 'Repository ohne Verbindung',
      'connection.holding': 'Verbindung hält Zustellungen an',
      'enrichment.failing': 'Anreicherung gestört',
      'upstream.failing': 'Früherer Content-Server gestört',
      'content.altered': 'Inhalt am Heimatziel verändert',
      'event_subscription.failing': 'Ereignisabonnement gestört',
    },
  },
  choiceHints: {
    events: {
      'destination.failing': 'Versuche schlagen nacheinander fehl, oder das Ziel ist gesperrt (Circuit offen).',
      'delivery.failed': 'Zustellungen sind endgültig fehlgeschlagen, und niemand hat sie wiederholt oder quittiert.',
      'source.silent': 'Aus dem Quellsystem ist so lange nichts gekommen, wie unten angegeben.',
      'source.refused': 'Die neuesten Anfragen des Quellsystems an ein Repository wurden alle abgewiesen.',
      'certificate.expiring':
        'Ein Zertifikat läuft bald ab: eines, das Signaturen prüft, und kein neueres ist aktiv, oder das Clientzertifikat eines Ziels.',
      'repository.not_connected': 'Dokumente werden verworfen, weil keine Verbindung zu einem Ziel führt.',
      'connection.holding': 'Eine inaktive Verbindung hält seit 24 Stunden Zustellungen an.',
      'upstream.failing':
        'Der frühere Content-Server eines Repositorys ist seit 5 Minuten gestört. Dokumente, die nur er hat, und neue werden mit 503 beantwortet.',
      'content.altered':
        'Ein Ziel, das allein Inhalte hat, hat einige nicht mehr oder mit anderen Bytes. Lesende Anfragen nach diesen Dokumenten werden mit 503 beantwortet.',
      'event_subscription.failing':
        'Der Empfänger eines Ereignisabonnements hat das nächste Ereignis 15 Minuten lang nicht angenommen, oder mit 410 geantwortet und das Abonnement so angehalten.',
      'enrichment.failing': 'Den neuesten Dokumenten einer Anreicherung fehlen die Geschäftsdaten. Zugestellt werden sie trotzdem.',
    },
  },
  noDestinations: 'Es gibt kein Ziel der Art E-Mail oder Webhook. Legen Sie zuerst eines an.',
  status: 'Status',
  inactive: 'Ausgeschaltet',
  test: 'Test senden',
  testing: 'Wird gesendet',
  testOk: 'Die Testmeldung wurde gesendet.',
  testFailed: 'Die Testmeldung konnte nicht gesendet werden.',
  testFailedOf: 'Die Testmeldung konnte nicht gesendet werden:',
  notices: 'Meldungen',
  noNotices: 'Es wurde noch nichts gemeldet.',
  notice: 'Meldung',
  time: 'Zeit',
  attempts: 'Versuche',
  nextAttempt: 'nächster Versuch',
  confirmDelete: 'Benachrichtigung löschen?',
  deleteEffect: (name) => `${name} meldet nichts mehr. Noch nicht zugestellte Meldungen werden mit gelöscht.`,
  noticeStatus: { pending: 'Ausstehend', delivered: 'Zugestellt', failed: 'Fehlgeschlagen' },
}
