export const en = {
  intro:
    'All workspaces that you may use. Those with documents that need attention come first, then those where a delivery has been open for ' +
    'more than five minutes or the storage is nearly full.',
  workspace: 'Workspace',
  attention: 'Needs attention',
  oldest: 'Oldest open delivery',
  lastRequest: 'Last request',
  stored: 'Stored',
  nothing: 'Nothing',
  none: 'None',
  storedOf: (stored: string, limit: string) => `${stored} of ${limit}`,
  here: 'shown now',
}

export const de: typeof en = {
  intro:
    'Alle Arbeitsbereiche, die Sie nutzen dürfen. Zuerst stehen die mit Dokumenten, die Handlungsbedarf haben, dann die, in denen eine ' +
    'Zustellung seit mehr als fünf Minuten offen oder der Speicher fast voll ist.',
  workspace: 'Arbeitsbereich',
  attention: 'Handlungsbedarf',
  oldest: 'Älteste offene Zustellung',
  lastRequest: 'Letzte Anfrage',
  stored: 'Gespeichert',
  nothing: 'Keiner',
  none: 'Keine',
  storedOf: (stored, limit) => `${stored} von ${limit}`,
  here: 'wird gerade angezeigt',
}
