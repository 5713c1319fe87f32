// Names and descriptions of the connectors and of their fields. English descriptions of fields come from the API, mostly.

type Names = Record<string, string>
type Connectors = Record<string, { name: string; purpose: string }>

const labels = {
  en: {
    access_key_id: 'Access key ID',
    account_key: 'Account key',
    account_url: 'Account URL',
    algorithms: 'SSH algorithms',
    audience: 'Token audience',
    auth_id: 'Name of the certificate (authId)',
    bearer_token: 'Bearer token',
    bucket: 'Bucket',
    ca_certificate: 'CA certificate',
    cc: 'Cc',
    certificate: 'Signing certificate',
    client_certificate: 'Client certificate',
    client_id: 'Client ID',
    client_key: 'Client private key',
    client_secret: 'Client secret',
    cloud: 'Microsoft cloud',
    container: 'Container',
    directory: 'Directory',
    document_ids: 'Document IDs',
    document_library: 'Document library',
    endpoint: 'Endpoint URL',
    external_account: 'Workload identity federation',
    external_id: 'External ID',
    federated_token_file: 'Federated token file',
    file_names: 'File names',
    folder: 'Folder',
    folder_id: 'Folder ID',
    format: 'Body format',
    from: 'Sender',
    header_name: 'Secret header: name',
    header_value: 'Secret header: value',
    headers: 'HTTP headers',
    helo_name: 'Name in EHLO',
    host: 'Host',
    host_key_sha256: 'Host key fingerprint',
    kms_key_id: 'KMS key ID',
    max_attachment_bytes: 'Largest attachment',
    max_concurrent_deliveries: 'Concurrent deliveries',
    max_deliveries_per_minute: 'Deliveries per minute',
    method: 'HTTP method',
    mount_point: 'Mount point',
    notice_format: 'Form of notices',
    part_file: 'Name while a file is written',
    passphrase: 'Passphrase',
    password: 'Password',
    path: 'Directory',
    path_style: 'Bucket in the path',
    port: 'Port',
    prefix: 'Prefix',
    previous_secret: 'Previous signing secret',
    previous_secret_expires_at: 'End of the previous secret',
    private_key: 'Private key',
    region: 'Region',
    repository: 'Content repository',
    role_arn: 'ARN of the role',
    sas_token: 'SAS token',
    scope: 'Token scope',
    secret: 'Signing secret',
    secret_access_key: 'Secret access key',
    server_side_encryption: 'Server-side encryption',
    service_account: 'Key file of the service account',
    session_token: 'Session token',
    signatures: 'Signatures',
    site_url: 'Site URL',
    storage_class: 'Storage class',
    object_lock_mode: 'Mode of the retention',
    immutability_mode: 'Mode of the retention',
    retain_days: 'Days of retention',
    retain_until: 'Retention until',
    legal_hold: 'Legal hold',
    subject: 'On behalf of',
    subject_template: 'Subject',
    tenant_id: 'Tenant ID',
    tls: 'Encryption',
    to: 'Recipients',
    token_auth_method: 'Client authentication',
    token_ca_certificate: 'CA certificate of the token URL',
    token_url: 'Token URL',
    url: 'URL',
    username: 'User name',
    write: 'Writing',
  },
  de: {
    access_key_id: 'Zugriffsschlüssel-ID',
    account_key: 'Kontoschlüssel',
    account_url: 'Konto-URL',
    algorithms: 'SSH-Algorithmen',
    audience: 'Audience des Tokens',
    auth_id: 'Name des Zertifikats (authId)',
    bearer_token: 'Bearer-Token',
    bucket: 'Bucket',
    ca_certificate: 'CA-Zertifikat',
    cc: 'Kopie (Cc)',
    certificate: 'Signaturzertifikat',
    client_certificate: 'Clientzertifikat',
    client_id: 'Client-ID',
    client_key: 'Privater Schlüssel des Clientzertifikats',
    client_secret: 'Geheimer Clientschlüssel',
    cloud: 'Microsoft-Cloud',
    container: 'Container',
    directory: 'Verzeichnis',
    document_ids: 'Dokument-IDs',
    document_library: 'Dokumentbibliothek',
    endpoint: 'Endpunkt-URL',
    external_account: 'Verbund von Workload-Identitäten',
    external_id: 'Externe ID (External ID)',
    federated_token_file: 'Datei mit dem Token eines Verbunds',
    file_names: 'Dateinamen',
    folder: 'Ordner',
    folder_id: 'Ordner-ID',
    format: 'Format des Inhalts',
    from: 'Absender',
    header_name: 'Geheimer Header: Name',
    header_value: 'Geheimer Header: Wert',
    headers: 'HTTP-Header',
    helo_name: 'Name im EHLO',
    host: 'Host',
    host_key_sha256: 'Fingerabdruck des Hostschlüssels',
    kms_key_id: 'KMS-Schlüssel-ID',
    max_attachment_bytes: 'Größter Anhang',
    max_concurrent_deliveries: 'Gleichzeitige Zustellungen',
    max_deliveries_per_minute: 'Zustellungen pro Minute',
    method: 'HTTP-Methode',
    mount_point: 'Einhängepunkt',
    notice_format: 'Form der Benachrichtigungen',
    part_file: 'Name während des Schreibens',
    passphrase: 'Passphrase',
    password: 'Passwort',
    path: 'Verzeichnis',
    path_style: 'Bucket im Pfad',
    port: 'Port',
    prefix: 'Präfix',
    previous_secret: 'Voriges Signaturgeheimnis',
    previous_secret_expires_at: 'Ende des vorigen Geheimnisses',
    private_key: 'Privater Schlüssel',
    region: 'Region',
    repository: 'Content-Repository',
    role_arn: 'ARN der Rolle',
    sas_token: 'SAS-Token',
    scope: 'Scope des Tokens',
    secret: 'Signaturgeheimnis',
    secret_access_key: 'Geheimer Zugriffsschlüssel',
    server_side_encryption: 'Serverseitige Verschlüsselung',
    service_account: 'Schlüsseldatei des Dienstkontos',
    session_token: 'Sitzungstoken',
    signatures: 'Signaturen',
    site_url: 'Website-URL',
    storage_class: 'Speicherklasse',
    object_lock_mode: 'Art der Aufbewahrung',
    immutability_mode: 'Art der Aufbewahrung',
    retain_days: 'Tage der Aufbewahrung',
    retain_until: 'Aufbewahren bis',
    legal_hold: 'Löschsperre',
    subject: 'Im Namen von',
    subject_template: 'Betreff',
    tenant_id: 'Mandanten-ID',
    tls: 'Verschlüsselung',
    to: 'Empfänger',
    token_auth_method: 'Authentifizierung des Clients',
    token_ca_certificate: 'CA-Zertifikat der Token-URL',
    token_url: 'Token-URL',
    url: 'URL',
    username: 'Benutzername',
    write: 'Schreibweise',
  },
} satisfies Record<string, Names>

// What the API says for programs only, or with the names of the API instead of those of the form.
const englishDescriptions: Names = {
  account_key:
    'Key of the storage account. The account name must be in the host of the account URL; with a custom domain, choose another sign-in',
  client_key: 'PEM private key of the client certificate, without a passphrase',
  header_value: 'Value of this header',
  host_key_sha256:
    'Fingerprint of the host key, as the command ssh-keygen -lf prints it (SHA256:...) or in hex. Without it, the relay trusts the key that the server presents at the first success, and stores its fingerprint here',
  headers:
    'Up to 50 further headers, sent unchanged. Headers that the relay or the HTTP client sets are refused, and so are names that sound like a secret: put a secret into the credentials, which are never shown',
  max_concurrent_deliveries:
    'Deliveries that run at this destination at a time, in the whole installation. Default: 16, unless the operator of the relay has set another number',
  max_deliveries_per_minute:
    'Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: unlimited, unless the operator of the relay has set another number',
  'email.port': 'TCP port. Default: 587; 465 with the encryption implicit; 25 with none',
  folder_id: 'Folder to store documents in: paste its address, or enter the last part of it. A shared drive is a folder, too',
  signatures:
    'Signatures of documents that the signing secret makes. http_message: over the digest of the body and over headers (RFC 9421), so that a body of the format raw is read once; standard_webhooks: over the bytes of the body, which are read twice; both. Pings, notices, events and late data have both',
  token_auth_method:
    'How the client ID and the client secret are sent to the token URL: in the header or in the form. Default: client_secret_basic',
  token_ca_certificate:
    'PEM certificate of the authority that signed the certificate of the token URL. Trusted instead of the public authorities',
  notice_format:
    'Form of notices, events and tests: standard_webhooks is a JSON object for programs; slack a message for an incoming webhook of Slack, teams a card for a workflow of Microsoft Teams, both sent with POST. Documents have the form of the body format',
  mount_point:
    'Directory at which the file system of the directory is mounted. Nothing is written while nothing is mounted there. Without it, the relay stores here at the first success where that file system is mounted. / stands for any',
  'sftp.username': 'User name',
  'webhook.password': 'Password that goes with the user name',
  'webhook.username': 'Sent together with the password as Authorization: Basic',
  cc: 'Further recipients',
  from: 'An address without a display name',
  to: 'Up to 100 addresses',
}

// A key that means something else at one connector has the name of the connector before it.
const entraCertificate =
  'PEM-Zertifikat, das anstelle eines Geheimnisses für die Anwendung registriert ist: RSA, gefolgt von den Zwischenzertifikaten, falls Entra sie braucht'

const germanDescriptions: Names = {
  access_key_id: 'Zugriffsschlüssel eines Kontos, das in den Bucket schreiben darf',
  account_key:
    'Schlüssel des Speicherkontos. Der Kontoname muss im Host der Konto-URL stehen; bei einer eigenen Domain eine andere Anmeldung verwenden',
  account_url:
    'Adresse des Speicherkontos: https://NAME.blob.core.windows.net, oder die Adresse in einer anderen Cloud (usgovcloudapi.net, chinacloudapi.cn), eines privaten Endpunkts oder eines Emulators (http://HOST:PORT/NAME)',
  audience: 'Audience des Tokens, falls der OAuth2-Server eine braucht',
  auth_id: 'Name, unter dem das Zertifikat dem Content-Server geschickt wurde (authId), zum Beispiel CN=RELAY',
  bearer_token: 'Wird als Authorization: Bearer gesendet',
  bucket: 'Der Bucket muss vorhanden sein',
  ca_certificate:
    'PEM-Zertifikat der Stelle, die das Zertifikat des Ziels ausgestellt hat. Ihm wird anstelle der öffentlichen Stellen vertraut',
  cc: 'Weitere Empfänger',
  certificate: 'PEM-Zertifikat, das dort im Repository aktiv ist. Es wird nicht mit einem Dokument gesendet',
  client_certificate:
    'PEM-Zertifikat, mit dem sich das Relay bei einem Ziel ausweist, das eines verlangt, gefolgt von den Zwischenzertifikaten',
  'blob.client_certificate': entraCertificate,
  'email.client_certificate': entraCertificate,
  'teamsite.client_certificate': entraCertificate,
  client_id: 'Anwendungs-ID (Client)',
  'email.client_id': 'Client-ID, die der OAuth2-Server kennt; bei Microsoft Entra die Anwendungs-ID (Client)',
  'webhook.client_id': 'Client-ID, die der OAuth2-Server kennt',
  client_key: 'Privater PEM-Schlüssel des Clientzertifikats, ohne Passphrase',
  client_secret: 'Wert des geheimen Clientschlüssels, nicht seine ID',
  'email.client_secret': 'Geheimer Schlüssel des Clients; bei Microsoft Entra der Wert, nicht die ID',
  'webhook.client_secret': 'Geheimer Schlüssel des Clients',
  cloud: 'Microsoft-Cloud, in der sich die Website befindet',
  container: 'Der Container muss vorhanden sein',
  directory:
    'Verzeichnis für die Dokumente. Es muss vorhanden sein, Unterverzeichnisse werden angelegt. Ein relativer Pfad beginnt in dem Verzeichnis, das das Konto nach der Anmeldung hat',
  document_ids:
    'ID eines Dokuments dort. source: die ID, die das Quellsystem vergeben hat, sodass seine Verknüpfungen gültig bleiben; relay: die ID des Dokuments in diesem Relay, für einen Server, der keine zwei Dokumente mit derselben ID bekommen darf',
  document_library:
    'Name der Dokumentbibliothek, wie ihn die Website anzeigt, zum Beispiel Dokumente. Sie muss vorhanden sein; Groß- und Kleinschreibung ist unerheblich',
  endpoint: 'Adresse eines Speichers, der nicht von AWS ist, http oder https',
  external_account:
    'Die Konfiguration des Verbunds von Workload-Identitäten, als JSON-Objekt, wie Google Cloud sie zum Herunterladen anbietet; ihre übrigen Angaben werden nicht beachtet. Es wird kein Schlüssel gespeichert',
  external_id: 'Externe ID, die die Vertrauensrichtlinie der Rolle verlangt (sts:ExternalId)',
  federated_token_file:
    'Pfad einer Datei auf den Workern mit einem Token, dem die Anwendung durch eine Verbundanmeldung vertraut, zum Beispiel von Kubernetes. Sie wird bei jeder Anmeldung neu gelesen. Der Betreiber muss ihr Verzeichnis in RELAY_TOKEN_FILE_ROOTS erlauben',
  'objstore.federated_token_file':
    'Pfad einer Datei auf den Workern mit einem Token, dem die Rolle vertraut, zum Beispiel von Kubernetes. Ohne sie weist sich das Relay mit seiner eigenen Identität aus. Sie wird bei jeder Anmeldung neu gelesen. Der Betreiber muss ihr Verzeichnis in RELAY_TOKEN_FILE_ROOTS erlauben',
  part_file:
    'Name, unter dem eine Datei geschrieben wird, bevor sie ihren eigenen bekommt. {id} steht für eine ID der Zustellung. Mit Schrägstrichen ein Pfad unterhalb des Verzeichnisses der Zustellungen, im selben Dateisystem, dessen Verzeichnisse angelegt werden; sonst im Verzeichnis der Datei',
  role_arn:
    'ARN einer Rolle, die in den Bucket schreiben darf. Das Relay nimmt sie mit seiner eigenen Identität an, oder mit dem Token der Datei. Der Betreiber muss sie in RELAY_S3_ROLES erlauben',
  folder: 'Ordner der Bibliothek für die Dokumente, zum Beispiel Eingang/SAP. Er wird bei Bedarf angelegt',
  folder_id:
    'Ordner für die Dokumente: Fügen Sie seine Adresse ein, oder geben Sie deren letzten Teil ein. Auch eine geteilte Ablage ist ein Ordner',
  format:
    'Form des Anfrageinhalts: raw sind die Bytes des Dokuments, multipart ein Formular mit Metadaten und Datei, json ein Objekt mit dem Inhalt in base64',
  from: 'Eine Adresse ohne Anzeigenamen',
  header_name: 'Name eines Headers, der ein Geheimnis enthält',
  header_value: 'Wert dieses Headers',
  headers:
    'Bis zu 50 weitere Header, die unverändert gesendet werden. Header, die das Relay oder der HTTP-Client setzt, werden abgelehnt, ebenso Namen, die nach einem Geheimnis klingen: Geheimnisse gehören in die Zugangsdaten, die nie angezeigt werden',
  algorithms:
    'Algorithmen von SSH. legacy: auch gebrochene und schwache, mit deren Hilfe ein Angreifer im Netzwerk womöglich alles lesen und ändern kann, auch das Passwort: Schlüsselaustausch mit SHA-1, Chiffren im CBC-Modus, MD5, DSA-Hostschlüssel. Nur für einen Server, der keine anderen hat',
  file_names:
    'Welche Namen Dateien und Ordner bekommen. any: die des Pfads, fast unverändert; windows: Namen, die Server und Freigaben von Windows annehmen. Nach einer Änderung heißen spätere Zustellungen anders, auch wiederholte',
  helo_name:
    'Name, mit dem das Relay den Server begrüßt (EHLO): ein vollständiger Hostname oder eine Adresse in eckigen Klammern. Standard: der vollständige Name des Workers oder seine Adresse',
  'email.host': 'Hostname oder Adresse des SMTP-Servers',
  'sftp.host': 'Hostname oder Adresse',
  host_key_sha256:
    'Fingerabdruck des Hostschlüssels, wie ihn der Befehl ssh-keygen -lf ausgibt (SHA256:...), oder hexadezimal. Ohne ihn vertraut das Relay dem Schlüssel, den der Server beim ersten Erfolg vorweist, und speichert dessen Fingerabdruck hier',
  kms_key_id: 'Schlüssel für aws:kms. Standard: der Standardschlüssel des Kontos',
  max_attachment_bytes:
    'Ein größeres Dokument wird nicht angehängt; die Mail enthält dann einen Link darauf. Durch base64 ist ein Anhang in der Mail um ein Drittel größer',
  max_concurrent_deliveries:
    'Zustellungen an dieses Ziel, die in der ganzen Installation gleichzeitig laufen. Standard: 16, falls der Betreiber des Relays nichts anderes eingestellt hat',
  max_deliveries_per_minute:
    'Zustellungen an dieses Ziel, die in der ganzen Installation pro Minute beginnen; 0 heißt unbegrenzt. Standard: unbegrenzt, falls der Betreiber des Relays nichts anderes eingestellt hat',
  method: 'HTTP-Methode',
  notice_format:
    'Form von Benachrichtigungen, Ereignissen und Tests: standard_webhooks ist ein JSON-Objekt für Programme; slack eine Nachricht für einen Incoming Webhook von Slack, teams eine Karte für einen Workflow von Microsoft Teams, beide mit POST. Dokumente haben die Form des Inhalts',
  mount_point:
    'Verzeichnis, an dem das Dateisystem des Verzeichnisses eingehängt ist. Solange dort nichts eingehängt ist, wird nichts geschrieben. Ist es leer, speichert das Relay hier beim ersten Erfolg, wo es eingehängt ist. / steht für jedes Dateisystem',
  passphrase: 'Passphrase des privaten Schlüssels',
  'email.password': 'Passwort des Kontos',
  'sftp.password':
    'Passwort des Kontos, falls es keinen Schlüssel hat oder der Server beides verlangt. Es wird auch verwendet, wenn der Server interaktiv danach fragt (keyboard-interactive)',
  'webhook.password': 'Passwort zum Benutzernamen',
  path: 'Verzeichnis für die Dokumente als absoluter Pfad auf den Workern. Es muss vorhanden sein, Unterverzeichnisse werden angelegt',
  path_style: 'Der Bucket steht im Pfad und nicht im Hostnamen, wie es die meisten Speicher verlangen, die nicht von AWS sind',
  'email.port': 'TCP-Port. Standard: 587; 465 mit der Verschlüsselung implicit; 25 mit none',
  'sftp.port': 'TCP-Port',
  'blob.prefix': 'Steht unverändert vor jedem Namen; ein Ordner endet mit einem Schrägstrich',
  'objstore.prefix': 'Steht unverändert vor jedem Schlüssel; ein Ordner endet mit einem Schrägstrich',
  object_lock_mode: 'Art der Aufbewahrung. COMPLIANCE: Niemand kann sie verkürzen. Standard: GOVERNANCE',
  immutability_mode: 'Art der Aufbewahrung. locked: Niemand kann sie verkürzen. Standard: unlocked',
  retain_days:
    'Tage ab dem Eingang eines Dokuments, für die das Ziel es aufbewahren muss. Mit retain_until: für Dokumente ohne dieses Datum',
  retain_until:
    'Feld der Geschäftsdaten mit dem Tag, bis zu dem das Ziel ein Dokument aufbewahren muss: {meta.retain_until}. Sein Wert ist 2036-12-31, 20361231 oder ein Zeitpunkt',
  legal_hold: 'Setzt am Ziel für jedes Dokument eine Löschsperre, die dort jemand mit der Berechtigung aufheben muss',
  previous_secret: 'Fügt eine zweite Signatur hinzu, solange Empfänger auf das neue Geheimnis umstellen',
  previous_secret_expires_at:
    'Wann die zweite Signatur endet, zum Beispiel 2026-12-01T00:00:00Z. Sonst entfernen Sie das vorige Geheimnis selbst',
  'content-server.private_key':
    'Privater PEM-Schlüssel des Zertifikats, ohne Passphrase: RSA, DSA oder EC. Er signiert die Adresse jeder Anfrage',
  private_key: 'Privater Schlüssel im OpenSSH- oder PEM-Format (PKCS#1, PKCS#8, SEC1)',
  repository: 'Content-Repository dort (contRep)',
  region: 'Region des Buckets, zum Beispiel eu-central-1. Speicher, die nicht von AWS sind, erwarten oft us-east-1',
  sas_token: 'Shared Access Signature für den Container: der Teil der SAS-Adresse nach dem Fragezeichen',
  scope: 'Scope des Tokens, falls der OAuth2-Server einen braucht',
  secret:
    'Signiert jede Anfrage: whsec_ und base64 von mindestens 16 Bytes, oder ein beliebiger Text, dessen UTF-8-Bytes der Schlüssel sind',
  secret_access_key: 'Geheimnis zum Zugriffsschlüssel',
  server_side_encryption: 'Vom Speicher verlangte Verschlüsselung. Standard: die des Buckets',
  service_account: 'Die Schlüsseldatei des Dienstkontos, als JSON-Objekt wie in der Datei; ihre übrigen Angaben werden nicht beachtet',
  session_token: 'Sitzungstoken befristeter Zugangsdaten',
  signatures:
    'Signaturen der Dokumente, die das Signaturgeheimnis erzeugt. http_message: über den Digest des Inhalts und über Header (RFC 9421), sodass ein Inhalt der Form raw einmal gelesen wird; standard_webhooks: über die Bytes des Inhalts, die zweimal gelesen werden; both: beide. Pings, Benachrichtigungen, Ereignisse und nachgelieferte Daten haben beide',
  site_url:
    'Adresse der Website selbst, zum Beispiel https://contoso.sharepoint.com/sites/Finance, ohne Bibliothek, Seite oder Abfrage dahinter',
  storage_class: 'Speicherklasse neuer Objekte, zum Beispiel STANDARD_IA. Standard: die des Buckets',
  subject:
    'Benutzer, in dessen Namen Dokumente abgelegt werden (domainweite Delegierung). Ihm gehören dann die Dateien, und sie zählen zu seinem Speicherplatz',
  subject_template: 'Platzhalter: repo_id, doc_id, comp_id, yyyy, mm, dd, ar_object, ext, file_name, description',
  tenant_id: 'Verzeichnis-ID (Mandant) oder eine Domain des Mandanten',
  'email.tenant_id': 'Verzeichnis-ID (Mandant) oder eine Domain des Mandanten: Microsoft Entra stellt die Token aus, für Exchange Online',
  tls: 'starttls: die Verbindung wechselt vor Anmeldung und Mail zu TLS; implicit: die Verbindung beginnt mit TLS; none: keine Verschlüsselung, Zugangsdaten werden dann nur an erlaubte private Adressen gesendet',
  to: 'Bis zu 100 Adressen',
  token_auth_method:
    'Wie Client-ID und geheimer Schlüssel an die Token-URL gesendet werden: im Header oder im Formular. Standard: client_secret_basic',
  token_ca_certificate:
    'PEM-Zertifikat der Stelle, die das Zertifikat der Token-URL ausgestellt hat. Ihr wird anstelle der öffentlichen Stellen vertraut',
  token_url: 'Adresse, an der ein OAuth2-Server Clients Token ausstellt (Client Credentials), nur https',
  'content-server.url': 'Adresse des Content-Servers mit dem HTTP-Skript und ohne Abfrage, wie sie im Quellsystem steht',
  url: 'Adresse, an die Dokumente gesendet werden, http oder https, ohne Benutzername und Passwort',
  'email.username': 'Konto, falls der Server eine Anmeldung verlangt: mit Token das Postfach, als das der Client senden darf',
  'sftp.username': 'Benutzername',
  write:
    'Wie eine Datei geschrieben wird. rename: unter einem verborgenen Namen, dann umbenannt; in_place: unter ihrem endgültigen Namen, für einen Server, der eine Datei übernimmt, sobald sie geschlossen ist, oder kein Umbenennen erlaubt. Programme, die das Verzeichnis lesen, sehen dann womöglich einen Teil eines Dokuments',
  'webhook.username': 'Wird zusammen mit dem Passwort als Authorization: Basic gesendet',
}

// The ways to sign in, by the names that the schemas of the connectors give them.
const signIns = {
  en: {
    none: 'None',
    access_key: 'Access key',
    aws_role: 'AWS role, with the identity of the relay',
    aws_web_identity: 'AWS role, with a federated token',
    account_key: 'Account key',
    sas_token: 'SAS token',
    entra: 'Microsoft Entra (client secret)',
    entra_certificate: 'Microsoft Entra (certificate)',
    entra_federated: 'Microsoft Entra (federated token)',
    service_account: 'Key file of a service account',
    external_account: 'Workload identity federation',
    bearer_token: 'Bearer token',
    basic: 'User name and password',
    header: 'Secret header',
    oauth2: 'OAuth2 (client credentials)',
    password: 'Password',
    private_key: 'Private key',
    private_key_and_password: 'Private key and password',
    signature: 'Signed requests',
  },
  de: {
    none: 'Keine',
    access_key: 'Zugriffsschlüssel',
    aws_role: 'AWS-Rolle, mit der Identität des Relays',
    aws_web_identity: 'AWS-Rolle, mit dem Token eines Verbunds',
    account_key: 'Kontoschlüssel',
    sas_token: 'SAS-Token',
    entra: 'Microsoft Entra (geheimer Clientschlüssel)',
    entra_certificate: 'Microsoft Entra (Zertifikat)',
    entra_federated: 'Microsoft Entra (Token eines Verbunds)',
    service_account: 'Schlüsseldatei eines Dienstkontos',
    external_account: 'Verbund von Workload-Identitäten',
    bearer_token: 'Bearer-Token',
    basic: 'Benutzername und Passwort',
    header: 'Geheimer Header',
    oauth2: 'OAuth2 (Client Credentials)',
    password: 'Passwort',
    private_key: 'Privater Schlüssel',
    private_key_and_password: 'Privater Schlüssel und Passwort',
    signature: 'Signierte Anfragen',
  },
} satisfies Record<string, Names>

const connectors = {
  en: {
    objstore: {
      name: 'Object storage',
      purpose: 'Stores each document as an object in a bucket of Amazon S3 or of a store that speaks S3.',
    },
    blob: { name: 'Azure Blob Storage', purpose: 'Stores each document as a block blob in a container.' },
    teamsite: { name: 'SharePoint', purpose: 'Stores each document as a file in a document library of a SharePoint site.' },
    drive: { name: 'Google Drive', purpose: 'Stores each document as a file in a folder, in the name of a service account.' },
    sftp: { name: 'SFTP server', purpose: 'Writes each document as a file over SSH.' },
    email: { name: 'E-mail', purpose: 'Sends each document as a mail, attached or, if it is too large, as a link.' },
    webhook: { name: 'Webhook', purpose: 'Sends each document as an HTTP request to an endpoint of your own.' },
    directory: { name: 'Directory', purpose: 'Writes each document as a file to a file system that is mounted on the workers.' },
    'content-server': {
      name: 'Content server',
      purpose: 'Stores each document at another content server, under the ids of the source system: the way back to an old archive.',
    },
  },
  de: {
    objstore: {
      name: 'Objektspeicher',
      purpose: 'Legt jedes Dokument als Objekt in einem Bucket von Amazon S3 oder eines S3-kompatiblen Speichers ab.',
    },
    blob: { name: 'Azure Blob Storage', purpose: 'Legt jedes Dokument als Blockblob in einem Container ab.' },
    teamsite: { name: 'SharePoint', purpose: 'Legt jedes Dokument als Datei in einer Dokumentbibliothek einer SharePoint-Website ab.' },
    drive: { name: 'Google Drive', purpose: 'Legt jedes Dokument als Datei in einem Ordner ab, im Namen eines Dienstkontos.' },
    sftp: { name: 'SFTP-Server', purpose: 'Schreibt jedes Dokument als Datei über SSH.' },
    email: { name: 'E-Mail', purpose: 'Sendet jedes Dokument als Mail: als Anhang oder, wenn es zu groß ist, als Link.' },
    webhook: { name: 'Webhook', purpose: 'Sendet jedes Dokument als HTTP-Anfrage an einen eigenen Endpunkt.' },
    directory: {
      name: 'Verzeichnis',
      purpose: 'Schreibt jedes Dokument als Datei in ein Dateisystem, das auf den Workern eingebunden ist.',
    },
    'content-server': {
      name: 'Content-Server',
      purpose:
        'Legt jedes Dokument in einem anderen Content-Server ab, unter den IDs des Quellsystems: der Weg zurück in ein altes Archiv.',
    },
  },
} satisfies Record<string, Connectors>

/** Returns `max_attachment_bytes` as `Max attachment bytes`: the name of a field that has no text. */
const spelledOut = (key: string): string => key.charAt(0).toUpperCase() + key.slice(1).replaceAll('_', ' ')

const inLanguage = (names: Names, kinds: Connectors, ways: Names, descriptions: Names) => ({
  signIn: (name: string): string => ways[name] ?? spelledOut(name),
  connector: (kind: string): string => kinds[kind]?.name ?? kind,
  purpose: (kind: string): string => kinds[kind]?.purpose ?? '',
  label: (key: string, title?: string): string => names[key] ?? title ?? spelledOut(key),
  /** @param described what the API says */
  description: (kind: string, key: string, described = ''): string => descriptions[`${kind}.${key}`] ?? descriptions[key] ?? described,
})

export const en = inLanguage(labels.en, connectors.en, signIns.en, englishDescriptions)
export const de: typeof en = inLanguage(labels.de, connectors.de, signIns.de, germanDescriptions)
