import { errorClassOf, remedyFor, remedyForEnded, remedyWhileRetried, type Remedy } from '../../src/connectors/error-codes.ts'

const actions: Record<Remedy, (destination: string) => string> = {
  credentials: (destination) => `Gültige Zugangsdaten für das Ziel ${destination} speichern`,
  permission: (destination) => `Dem Konto des Ziels ${destination} die fehlenden Berechtigungen geben`,
  configuration: (destination) => `Die Konfiguration des Ziels ${destination} nach der Meldung berichtigen`,
  target: (destination) => `Prüfen, ob das Ziel ${destination} erreichbar ist und Anfragen annimmt`,
  relay: () => 'Das Problem im Relay beheben, das die Meldung nennt',
}

export const en = {
  whatToDo: 'What to do',
  /** What to do about a delivery that failed with this code. One without a code was ended in Temporal. */
  remedy: (code: string | null, destination: string): string => (code === null ? remedyForEnded : remedyFor(code, destination)),
  remedyWhileRetried: (code: string | null, destination: string): string => remedyWhileRetried(code ?? undefined, destination),
}

export const de: typeof en = {
  whatToDo: 'Was zu tun ist',
  remedy: (code, destination) =>
    code === null
      ? 'Das Dokument wiederholen, falls es dort noch gebraucht wird, sonst zur Kenntnis nehmen.'
      : `${actions[errorClassOf(code)](destination)}, dann das Dokument wiederholen.`,
  remedyWhileRetried: (code, destination) => `${actions[errorClassOf(code ?? '')](destination)}. Das Relay versucht es von selbst wieder.`,
}
