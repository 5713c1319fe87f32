// Names and descriptions of the connectors and of their fields. English descriptions of fields come from the description of the API, mostly.

type Names = Record<string, string>
type Connectors = Record<string, { name: string; purpose: string }>

const labels = {
  en: {
    access_key_id: 'Access key ID',
    account_key: 'Account key',
    account_url: 'Account URL',
    bearer_token: 'Bearer token',
    bucket: 'Bucket',
    ca_certificate: 'CA certificate',
    cc: 'Cc',
    client_id: 'Client ID',
    client_secret: 'Client secret',
    cloud: 'Microsoft cloud',
    container: 'Container',
    directory: 'Directory',
    document_library: 'Document library',
    endpoint: 'Endpoint URL',
    folder: 'Folder',
    folder_id: 'Folder ID',
    format: 'Body format',
    from: 'Sender',
    header_name: 'Secret header: name',
    header_value: 'Secret header: value',
    headers: 'HTTP headers',
    host: 'Host',
    host_key_sha256: 'Host key fingerprint',
    kms_key_id: 'KMS key ID',
    max_attachment_bytes: 'Largest attachment (bytes)',
    max_concurrent_deliveries: 'Concurrent deliveries',
    max_deliveries_per_minute: 'Deliveries per minute',
    method: 'HTTP method',
    passphrase: 'Passphrase',
    password: 'Password',
    path: 'Directory',
    path_style: 'Bucket in the path',
    port: 'Port',
    prefix: 'Prefix',
    previous_secret: 'Previous signing secret',
    private_key: 'Private key',
    region: 'Region',
    sas_token: 'SAS token',
    secret: 'Signing secret',
    secret_access_key: 'Secret access key',
    send_traceparent: 'Send traceparent',
    server_side_encryption: 'Server-side encryption',
    service_account: 'Key file of the service account',
    session_token: 'Session token',
    site_url: 'Site URL',
    storage_class: 'Storage class',
    subject: 'On behalf of',
    subject_template: 'Subject',
    tenant_id: 'Tenant ID',
    tls: 'Encryption',
    to: 'Recipients',
    url: 'URL',
    username: 'User name',
  },
  de: {
    access_key_id: 'Zugriffsschlüssel-ID',
    account_key: 'Kontoschlüssel',
    account_url: 'Konto-URL',
    bearer_token: 'Bearer-Token',
    bucket: 'Bucket',
    ca_certificate: 'CA-Zertifikat',
    cc: 'Kopie (Cc)',
    client_id: 'Client-ID',
    client_secret: 'Geheimer Clientschlüssel',
    cloud: 'Microsoft-Cloud',
    container: 'Container',
    directory: 'Verzeichnis',
    document_library: 'Dokumentbibliothek',
    endpoint: 'Endpunkt-URL',
    folder: 'Ordner',
    folder_id: 'Ordner-ID',
    format: 'Format des Inhalts',
    from: 'Absender',
    header_name: 'Geheimer Header: Name',
    header_value: 'Geheimer Header: Wert',
    headers: 'HTTP-Header',
    host: 'Host',
    host_key_sha256: 'Fingerabdruck des Hostschlüssels',
    kms_key_id: 'KMS-Schlüssel-ID',
    max_attachment_bytes: 'Größter Anhang (Bytes)',
    max_concurrent_deliveries: 'Gleichzeitige Zustellungen',
    max_deliveries_per_minute: 'Zustellungen pro Minute',
    method: 'HTTP-Methode',
    passphrase: 'Passphrase',
    password: 'Passwort',
    path: 'Verzeichnis',
    path_style: 'Bucket im Pfad',
    port: 'Port',
    prefix: 'Präfix',
    previous_secret: 'Voriges Signaturgeheimnis',
    private_key: 'Privater Schlüssel',
    region: 'Region',
    sas_token: 'SAS-Token',
    secret: 'Signaturgeheimnis',
    secret_access_key: 'Geheimer Zugriffsschlüssel',
    send_traceparent: 'traceparent senden',
    server_side_encryption: 'Serverseitige Verschlüsselung',
    service_account: 'Schlüsseldatei des Dienstkontos',
    session_token: 'Sitzungstoken',
    site_url: 'Website-URL',
    storage_class: 'Speicherklasse',
    subject: 'Im Namen von',
    subject_template: 'Betreff',
    tenant_id: 'Mandanten-ID',
    tls: 'Verschlüsselung',
    to: 'Empfänger',
    url: 'URL',
    username: 'Benutzername',
  },
} satisfies Record<string, Names>

// What the description says for programs only.
const englishDescriptions: Names = {
  cc: 'Further recipients',
  from: 'An address without a display name',
  send_traceparent: 'Requests carry the header traceparent while the relay records traces, so that the target can continue the trace',
  to: 'Up to 100 addresses',
}

// A key that means something else at one connector has the name of the connector before it.
const germanDescriptions: Names = {
  access_key_id: 'Zugriffsschlüssel eines Kontos, das in den Bucket schreiben darf',
  account_key:
    'Schlüssel des Speicherkontos. Der Kontoname muss im Host der Konto-URL stehen; bei einer eigenen Domain eine andere Anmeldung verwenden',
  account_url:
    'Adresse des Speicherkontos: https://NAME.blob.core.windows.net, oder die Adresse in einer anderen Cloud (usgovcloudapi.net, chinacloudapi.cn), eines privaten Endpunkts oder eines Emulators (http://HOST:PORT/NAME)',
  bearer_token: 'Wird als Authorization: Bearer gesendet',
  bucket: 'Der Bucket muss vorhanden sein',
  ca_certificate:
    'PEM-Zertifikat der Stelle, die das Zertifikat des Ziels ausgestellt hat. Ihm wird anstelle der öffentlichen Stellen vertraut',
  cc: 'Weitere Empfänger',
  client_id: 'Anwendungs-ID (Client)',
  client_secret: 'Wert des geheimen Clientschlüssels, nicht seine ID',
  cloud: 'Microsoft-Cloud, in der sich die Website befindet',
  container: 'Der Container muss vorhanden sein',
  directory:
    'Verzeichnis für die Dokumente. Es muss vorhanden sein, Unterverzeichnisse werden angelegt. Ein relativer Pfad beginnt in dem Verzeichnis, das das Konto nach der Anmeldung hat',
  document_library:
    'Name der Dokumentbibliothek, wie ihn die Website anzeigt, zum Beispiel Dokumente. Sie muss vorhanden sein; Groß- und Kleinschreibung ist unerheblich',
  endpoint: 'Adresse eines Speichers, der nicht von AWS ist, http oder https',
  folder: 'Ordner der Bibliothek für die Dokumente, zum Beispiel Eingang/SAP. Er wird bei Bedarf angelegt',
  folder_id:
    'Ordner für die Dokumente: der letzte Teil seiner Adresse https://drive.google.com/drive/folders/FOLDER_ID. Auch die ID einer geteilten Ablage ist ein Ordner',
  format:
    'Form des Anfrageinhalts: raw sind die Bytes des Dokuments, multipart ein Formular mit Metadaten und Datei, json ein Objekt mit dem Inhalt in base64',
  from: 'Eine Adresse ohne Anzeigenamen',
  header_name: 'Name eines Headers, der ein Geheimnis enthält',
  header_value: 'Wert dieses Headers',
  headers:
    'Bis zu 50 weitere Header, die unverändert gesendet werden. Header, die das Relay oder der HTTP-Client setzt, werden abgelehnt, ebenso Namen, die nach einem Geheimnis klingen: Geheimnisse gehören in die Zugangsdaten, die nie angezeigt werden',
  'email.host': 'Hostname oder Adresse des SMTP-Servers',
  'sftp.host': 'Hostname oder Adresse',
  host_key_sha256:
    'Fingerabdruck des Hostschlüssels, wie ihn `ssh-keygen -lf` ausgibt (SHA256:...), oder hexadezimal. Ohne ihn vertraut das Relay dem Schlüssel, den der Server beim ersten Erfolg vorweist, und speichert dessen Fingerabdruck hier',
  kms_key_id: 'Schlüssel für aws:kms. Standard: der Standardschlüssel des Kontos',
  max_attachment_bytes:
    'Ein größeres Dokument wird nicht angehängt; die Mail enthält dann einen Link darauf. Durch base64 ist ein Anhang in der Mail um ein Drittel größer',
  max_concurrent_deliveries:
    'Zustellungen an dieses Ziel, die in der ganzen Installation gleichzeitig laufen. Standard: DELIVERY_MAX_CONCURRENT_PER_DESTINATION',
  max_deliveries_per_minute:
    'Zustellungen an dieses Ziel, die in der ganzen Installation pro Minute beginnen; 0 heißt unbegrenzt. Standard: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION',
  method: 'HTTP-Methode',
  passphrase: 'Passphrase des privaten Schlüssels',
  'email.password': 'Passwort des Kontos',
  'sftp.password':
    'Passwort des Kontos, falls es keinen Schlüssel hat. Es wird auch verwendet, wenn der Server interaktiv danach fragt (keyboard-interactive)',
  'webhook.password': 'Passwort zum Benutzernamen',
  path: 'Verzeichnis für die Dokumente als absoluter Pfad auf den Workern. Es muss vorhanden sein, Unterverzeichnisse werden angelegt',
  path_style: 'Der Bucket steht im Pfad und nicht im Hostnamen, wie es die meisten Speicher verlangen, die nicht von AWS sind',
  'email.port': 'TCP-Port. Standard: 587; 465 mit tls implicit; 25 mit tls none',
  'sftp.port': 'TCP-Port',
  'objstore.prefix': 'Steht unverändert vor jedem Schlüssel; ein Ordner endet mit einem Schrägstrich',
  'blob.prefix': 'Steht unverändert vor jedem Namen; ein Ordner endet mit einem Schrägstrich',
  previous_secret: 'Fügt eine zweite Signatur hinzu, solange Empfänger auf das neue Geheimnis umstellen',
  private_key: 'Privater Schlüssel im OpenSSH- oder PEM-Format',
  region: 'Region des Buckets, zum Beispiel eu-central-1. Speicher, die nicht von AWS sind, erwarten oft us-east-1',
  sas_token: 'Shared Access Signature für den Container: der Teil der SAS-Adresse nach dem Fragezeichen',
  secret: 'Signiert jede Anfrage (Standard Webhooks): whsec_ und base64, oder ein beliebiger Text, dessen UTF-8-Bytes der Schlüssel sind',
  secret_access_key: 'Geheimnis zum Zugriffsschlüssel',
  send_traceparent:
    'Anfragen tragen den Header traceparent, solange das Relay Traces aufzeichnet, sodass das Ziel den Trace fortsetzen kann',
  server_side_encryption: 'Vom Speicher verlangte Verschlüsselung. Standard: die des Buckets',
  service_account: 'Die Schlüsseldatei des Dienstkontos, als JSON-Objekt wie in der Datei; ihre übrigen Angaben werden nicht beachtet',
  session_token: 'Sitzungstoken befristeter Zugangsdaten',
  site_url:
    'Adresse der Website selbst, zum Beispiel https://contoso.sharepoint.com/sites/Finance, ohne Bibliothek, Seite oder Abfrage dahinter',
  storage_class: 'Speicherklasse neuer Objekte, zum Beispiel STANDARD_IA. Standard: die des Buckets',
  subject:
    'Benutzer, in dessen Namen Dokumente abgelegt werden (domainweite Delegierung). Ihm gehören dann die Dateien, und sie zählen zu seinem Speicherplatz',
  subject_template: 'Platzhalter: repo_id, doc_id, comp_id, yyyy, mm, dd, ar_object, ext, file_name',
  tenant_id: 'Verzeichnis-ID (Mandant) oder eine Domain des Mandanten',
  tls: 'starttls: die Verbindung wechselt vor Anmeldung und Mail zu TLS; implicit: die Verbindung beginnt mit TLS; none: keine Verschlüsselung, ein Passwort wird dann nur an erlaubte private Adressen gesendet',
  to: 'Bis zu 100 Adressen',
  url: 'Adresse, an die Dokumente gesendet werden, http oder https, ohne Benutzername und Passwort',
  'email.username': 'Konto, falls der Server eine Anmeldung verlangt',
  'sftp.username': 'Konto',
  'webhook.username': 'Wird zusammen mit dem Passwort als Authorization: Basic gesendet',
}

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
  },
} satisfies Record<string, Connectors>

/** Returns `max_attachment_bytes` as `Max attachment bytes`: the name of a field that has no text. */
const spelledOut = (key: string): string => key.charAt(0).toUpperCase() + key.slice(1).replaceAll('_', ' ')

const inLanguage = (names: Names, kinds: Connectors, descriptions: Names) => ({
  connector: (kind: string): string => kinds[kind]?.name ?? kind,
  purpose: (kind: string): string => kinds[kind]?.purpose ?? '',
  label: (key: string, title?: string): string => names[key] ?? title ?? spelledOut(key),
  /** @param described what the description of the API says */
  description: (kind: string, key: string, described = ''): string => descriptions[`${kind}.${key}`] ?? descriptions[key] ?? described,
})

export const en = inLanguage(labels.en, connectors.en, englishDescriptions)
export const de: typeof en = inLanguage(labels.de, connectors.de, germanDescriptions)
