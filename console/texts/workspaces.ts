import { plural } from './plural.ts'

export const en = {
  intro:
    'All workspaces that you may use. Those where something fails or is refused come first, then those where a delivery is held or has been ' +
    'open for more than five minutes, or the storage is nearly full.',
  workspace: 'Workspace',
  attention: 'Needs attention',
  oldest: 'Oldest open delivery',
  lastRequest: 'Last request',
  stored: 'Stored',
  nothing: 'Nothing',
  failing: (count: number) => plural('en', count, 'destination fails', 'destinations fail'),
  refusing: (count: number) => `Requests to ${plural('en', count, 'repository', 'repositories')} refused`,
  held: (count: number) => plural('en', count, 'delivery held', 'deliveries held'),
  none: 'None',
  storedOf: (stored: string, limit: string) => `${stored} of ${limit}`,
  here: 'shown now',
}

export const de: typeof en = {
  intro:
    'Alle Arbeitsbereiche, die Sie nutzen dürfen. Zuerst stehen die, in denen etwas fehlschlägt oder abgewiesen wird, dann die, in denen eine ' +
    'Zustellung angehalten oder seit mehr als fünf Minuten offen oder der Speicher fast voll ist.',
  workspace: 'Arbeitsbereich',
  attention: 'Handlungsbedarf',
  oldest: 'Älteste offene Zustellung',
  lastRequest: 'Letzte Anfrage',
  stored: 'Gespeichert',
  nothing: 'Keiner',
  failing: (count) => plural('de', count, 'Ziel ist gestört', 'Ziele sind gestört'),
  refusing: (count) => `Anfragen an ${plural('de', count, 'Repository', 'Repositories')} abgewiesen`,
  held: (count) => plural('de', count, 'Zustellung angehalten', 'Zustellungen angehalten'),
  none: 'Keine',
  storedOf: (stored, limit) => `${stored} von ${limit}`,
  here: 'wird gerade angezeigt',
}
