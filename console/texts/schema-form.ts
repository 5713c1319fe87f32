interface Bounds {
  minimum?: number | undefined
  maximum?: number | undefined
}

const range = (locale: string, { minimum, maximum }: Bounds, between: string, least: string, most: string): string => {
  const [from, to] = [minimum, maximum].map((bound) => bound?.toLocaleString(locale))
  if (from !== undefined && to !== undefined) return between.replace('{from}', from).replace('{to}', to)
  return from === undefined ? most.replace('{to}', to ?? '') : least.replace('{from}', from)
}

export const en = {
  required: 'required',
  byDefault: (value: string) => `Default: ${value}`,
  isDefault: (value: string) => `${value} (default)`,
  noChoice: 'Not set',
  onePerLine: 'One per line.',
  pairPerLine: 'One per line, as NAME: VALUE.',
  between: (bounds: Bounds) => `${range('en', bounds, '{from} to {to}', '{from} or more', '{to} or less')}.`,
  problems: {
    required: 'Enter a value.',
    number: 'Enter a number.',
    integer: 'Enter a whole number.',
    range: (bounds: Bounds) =>
      `Enter a number ${range('en', bounds, 'from {from} to {to}', 'that is not below {from}', 'that is not above {to}')}.`,
    json: 'Enter a JSON object.',
    pairs: 'Enter NAME: VALUE in each line.',
  },
}

export const de: typeof en = {
  required: 'erforderlich',
  byDefault: (value) => `Standard: ${value}`,
  isDefault: (value) => `${value} (Standard)`,
  noChoice: 'Nicht festgelegt',
  onePerLine: 'Ein Wert pro Zeile.',
  pairPerLine: 'Ein Paar pro Zeile, als NAME: WERT.',
  between: (bounds) => `${range('de', bounds, '{from} bis {to}', 'Mindestens {from}', 'Höchstens {to}')}.`,
  problems: {
    required: 'Geben Sie einen Wert ein.',
    number: 'Geben Sie eine Zahl ein.',
    integer: 'Geben Sie eine ganze Zahl ein.',
    range: (bounds) => `Geben Sie eine Zahl ${range('de', bounds, 'von {from} bis {to}', 'ab {from}', 'bis {to}')} ein.`,
    json: 'Geben Sie ein JSON-Objekt ein.',
    pairs: 'Geben Sie in jeder Zeile NAME: WERT ein.',
  },
}
