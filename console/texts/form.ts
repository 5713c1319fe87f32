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
  days: 'days',
  bytes: 'bytes',
  required: 'required',
  // A value that ends with a full stop is quoted.
  byDefault: (value: string) => (value.endsWith('.') ? `Default: "${value}".` : `Default: ${value}.`),
  isDefault: (value: string) => `${value} (default)`,
  noChoice: 'Not set',
  generate: 'Generate',
  generateOf: (label: string) => `Generate: ${label}`,
  generated: 'Copy the value to the receiver now: the relay never shows it again.',
  onePerLine: 'One per line.',
  pairPerLine: 'One per line, as NAME: VALUE.',
  allowed: (bounds: Bounds) => `Allowed: ${range('en', bounds, '{from} to {to}', '{from} or more', '{to} or less')}.`,
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
  days: 'Tage',
  bytes: 'Bytes',
  required: 'erforderlich',
  byDefault: (value) => (value.endsWith('.') ? `Standard: "${value}".` : `Standard: ${value}.`),
  isDefault: (value) => `${value} (Standard)`,
  noChoice: 'Nicht festgelegt',
  generate: 'Erzeugen',
  generateOf: (label) => `Erzeugen: ${label}`,
  generated: 'Kopieren Sie den Wert jetzt zum Empfänger: Das Relay zeigt ihn nie wieder an.',
  onePerLine: 'Ein Wert pro Zeile.',
  pairPerLine: 'Ein Paar pro Zeile, als NAME: WERT.',
  allowed: (bounds) => `Erlaubt: ${range('de', bounds, '{from} bis {to}', '{from} oder mehr', '{to} oder weniger')}.`,
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
