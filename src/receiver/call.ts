import type { Config } from '../config.ts'
import type { ContentStore } from '../content/store.ts'
import type { Appends } from '../db/appends.ts'
import type { ArchiveDocuments } from '../db/archive-documents.ts'
import type { Certificates } from '../db/certificates.ts'
import type { DocumentMessage } from '../db/outbox.ts'
import type { Receipts } from '../db/receipts.ts'
import type { Source } from '../db/sources.ts'
import type { Log } from '../log.ts'
import type { Answer } from './answer.ts'
import type { BodyLimits } from './body.ts'
import type { Command } from './command.ts'
import type { Exchange } from './exchange.ts'
import type { Incoming } from './incoming.ts'
import type { Turns } from './turns.ts'

/** A command on a repository that may be carried out. */
export interface Call {
  source: Source
  command: Command
  request: Incoming
  /** See `Exchange`: for commands that bring documents. */
  captured: Exchange['captured']
}

export interface Contents {
  stores: Record<ContentStore['kind'], ContentStore | undefined>
  /** The one that new documents go to. */
  writeTo: ContentStore
}

export interface CommandDeps {
  appends: Appends
  /** Lets the appends to one component follow each other. */
  turns: Turns
  archiveDocuments: ArchiveDocuments
  certificates: Certificates
  receipts: Receipts
  contents: Contents
  launch(messages: DocumentMessage[]): void
  log: Log
  limits: BodyLimits &
    Pick<
      Config,
      'RELAY_DOCUMENT_MAX_PARTS' | 'RELAY_SEARCH_MAX_RESULTS' | 'RELAY_CERTIFICATE_MAX_BYTES' | 'RELAY_REPOSITORY_MAX_CERTIFICATES'
    >
}

export type CommandHandler = (call: Call, deps: CommandDeps) => Promise<Answer>
