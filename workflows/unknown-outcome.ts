/**
 * Returns the error for an outcome that a worker of a later version has reported. It is no failure of Temporal's, so it fails the workflow
 * task and not the workflow: the task is repeated until a worker of that version takes it.
 */
export const unknownOutcome = (outcome: unknown): TypeError =>
  new TypeError(`the outcome ${JSON.stringify(outcome)} is unknown to this version`)
