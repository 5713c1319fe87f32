import { plural } from './plural.ts'

export const en = {
  title: 'Migrations from the earlier content server',
  none: 'None yet. The command relay migrate-documents start reads the lists of the source system and copies their documents.',
  states: { running: 'Running', paused: 'Paused', completed: 'Completed', cancelled: 'Cancelled' },
  modes: { copy: 'Copy', check: 'Check only' },
  progress: (judged: number, rows: number) => `${judged.toLocaleString('en')} of ${plural('en', rows, 'row', 'rows')}`,
  verdicts: {
    found: (count: number) => `${count.toLocaleString('en')} found`,
    copied: (count: number) => `${count.toLocaleString('en')} copied`,
    equal: (count: number) => `${count.toLocaleString('en')} equal`,
    missing: (count: number) => `${count.toLocaleString('en')} missing`,
    different: (count: number) => `${count.toLocaleString('en')} different`,
    damaged: (count: number) => `${count.toLocaleString('en')} damaged`,
    failed: (count: number) => `${count.toLocaleString('en')} failed`,
  },
  waiting: 'It waits:',
  pause: 'Pause',
  resume: 'Resume',
  cancel: 'Cancel',
}

export const de: typeof en = {
  title: 'Migrationen aus dem früheren Content-Server',
  none: 'Noch keine. Der Befehl relay migrate-documents start liest die Listen des Quellsystems und kopiert deren Dokumente.',
  states: { running: 'Läuft', paused: 'Angehalten', completed: 'Abgeschlossen', cancelled: 'Abgebrochen' },
  modes: { copy: 'Kopieren', check: 'Nur prüfen' },
  progress: (judged, rows) => `${judged.toLocaleString('de')} von ${plural('de', rows, 'Zeile', 'Zeilen')}`,
  verdicts: {
    found: (count) => `${count.toLocaleString('de')} gefunden`,
    copied: (count) => `${count.toLocaleString('de')} kopiert`,
    equal: (count) => `${count.toLocaleString('de')} gleich`,
    missing: (count) => `${count.toLocaleString('de')} fehlen`,
    different: (count) => `${count.toLocaleString('de')} abweichend`,
    damaged: (count) => `${count.toLocaleString('de')} beschädigt`,
    failed: (count) => `${count.toLocaleString('de')} fehlgeschlagen`,
  },
  waiting: 'Sie wartet:',
  pause: 'Anhalten',
  resume: 'Fortsetzen',
  cancel: 'Abbrechen',
}
