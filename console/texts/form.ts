interface Bounds {
  minimum?: number | undefined
  maximum?: number | undefined
}

const range = (locale: string, { minimum, maximum }: Bounds, between: string, least: string, most: string): string => {
  const [from, to] = [minimum, maximum].map((bound) => bound?.toLocaleString(locale))
  if (from !== undefined && to !== undefined) return between.replace('{from}', from).replace('{to}', to)
  return from === undefined ? most.replace('{to}', to ?? '') : least.replace('{from}', from)
}

// The texts that all forms share.
export const en = {
  save: 'Save',
  saving: 'Saving',
  edit: 'Edit',
  delete: 'Delete',
  saved: 'Saved.',
  unchanged: 'Nothing has been changed.',
  conflict: 'Somebody else has saved other values meanwhile. Nothing of yours was saved.',
  loadCurrent: 'Load the current values',
  someInvalid: 'Some values are not valid. The fields say what is wrong.',
  seconds: 'seconds',
  hours: 'hours',
  days: 'days',
  bytes: 'bytes',
  required: 'required',
  // A value that ends with a full stop is quoted.
  byDefault: (value: string) => (value.endsWith('.') ? `Default: "${value}".` : `Default: ${value}.`),
  isDefault: (value: string) => `${value} (default)`,
  noChoice: 'Not set',
  choose: 'Please choose',
  generate: 'Generate',
  generateOf: (label: string) => `Generate: ${label}`,
  generated: 'Copy the value to the receiver now: the relay never shows it again.',
  onePerLine: 'One per line.',
  pairPerLine: 'One per line, as NAME: VALUE.',
  allowed: (bounds: Bounds) => `Allowed: ${range('en', bounds, '{from} to {to}', '{from} or more', '{to} or less')}.`,
  credentials: {
    title: 'Credentials',
    signIn: 'Sign-in',
    help: 'The relay stores credentials encrypted and never shows them again.',
    none: 'No credentials are stored.',
    kept: 'The stored credentials are kept.',
    keptOf: (signIn: string) => `The stored credentials are kept. Sign-in: ${signIn}.`,
    replaced: 'These values replace all stored credentials. Enter everything that the target needs.',
    further: 'Further credentials',
    enter: 'Enter credentials',
    replace: 'Replace the credentials',
    cancel: 'Enter none',
    keep: 'Keep the stored credentials',
  },
  problems: {
    required: 'Enter a value.',
    choice: 'Make a choice.',
    number: 'Enter a number.',
    integer: 'Enter a whole number.',
    range: (bounds: Bounds) =>
      `Enter a number ${range('en', bounds, 'from {from} to {to}', 'that is not below {from}', 'that is not above {to}')}.`,
    json: 'Enter a JSON object.',
    pairs: 'Enter NAME: VALUE in each line.',
  },
}

export const de: typeof en = {
  save: 'Speichern',
  saving: 'Wird gespeichert',
  edit: 'Bearbeiten',
  delete: 'Löschen',
  saved: 'Gespeichert.',
  unchanged: 'Es wurde nichts geändert.',
  conflict: 'Inzwischen hat jemand andere Werte gespeichert. Ihre Änderungen wurden nicht gespeichert.',
  loadCurrent: 'Aktuelle Werte laden',
  someInvalid: 'Einige Werte sind ungültig. Was falsch ist, steht bei den Feldern.',
  seconds: 'Sekunden',
  hours: 'Stunden',
  days: 'Tage',
  bytes: 'Bytes',
  required: 'erforderlich',
  byDefault: (value) => (value.endsWith('.') ? `Standard: "${value}".` : `Standard: ${value}.`),
  isDefault: (value) => `${value} (Standard)`,
  noChoice: 'Nicht festgelegt',
  choose: 'Bitte wählen',
  generate: 'Erzeugen',
  generateOf: (label) => `Erzeugen: ${label}`,
  generated: 'Kopieren Sie den Wert jetzt zum Empfänger: Das Relay zeigt ihn nie wieder an.',
  onePerLine: 'Ein Wert pro Zeile.',
  pairPerLine: 'Ein Paar pro Zeile, als NAME: WERT.',
  allowed: (bounds) => `Erlaubt: ${range('de', bounds, '{from} bis {to}', '{from} oder mehr', '{to} oder weniger')}.`,
  credentials: {
    title: 'Zugangsdaten',
    signIn: 'Anmeldung',
    help: 'Das Relay speichert Zugangsdaten verschlüsselt und zeigt sie nie wieder an.',
    none: 'Es sind keine Zugangsdaten gespeichert.',
    kept: 'Die gespeicherten Zugangsdaten bleiben.',
    keptOf: (signIn) => `Die gespeicherten Zugangsdaten bleiben. Anmeldung: ${signIn}.`,
    replaced: 'Diese Werte ersetzen alle gespeicherten Zugangsdaten. Geben Sie alles ein, was das Ziel braucht.',
    further: 'Weitere Zugangsdaten',
    enter: 'Zugangsdaten eingeben',
    replace: 'Zugangsdaten ersetzen',
    cancel: 'Keine eingeben',
    keep: 'Gespeicherte Zugangsdaten behalten',
  },
  problems: {
    required: 'Geben Sie einen Wert ein.',
    choice: 'Treffen Sie eine Auswahl.',
    number: 'Geben Sie eine Zahl ein.',
    integer: 'Geben Sie eine ganze Zahl ein.',
    range: (bounds) => `Geben Sie eine Zahl ${range('de', bounds, 'von {from} bis {to}', 'ab {from}', 'bis {to}')} ein.`,
    json: 'Geben Sie ein JSON-Objekt ein.',
    pairs: 'Geben Sie in jeder Zeile NAME: WERT ein.',
  },
}
