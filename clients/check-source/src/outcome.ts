import { plainText } from '../../../src/base/text.ts'

/** The server does something else than the protocol says. */
export class Deviation extends Error {
  /** If it is undefined, that of the check. */
  readonly remedy: string | undefined

  constructor(message: string, remedy?: string) {
    super(plainText(message))
    this.name = 'Deviation'
    this.remedy = remedy
  }
}

/** The server does not have a command that the protocol leaves to it. */
export class NotOffered extends Error {
  constructor(message: string) {
    super(plainText(message))
    this.name = 'NotOffered'
  }
}

/** The check has no result, because something that it needs has failed. */
export class NotChecked extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NotChecked'
  }
}
