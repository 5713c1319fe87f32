import type { Certificates } from '../access/certificates.ts'
import type { AppendToDocument } from '../archive/append.ts'
import type { ArchiveDocuments } from '../archive/documents.ts'
import type { Receive } from '../archive/receive.ts'
import type { ReceivingRepositories, ReceivingRepository } from '../archive/receiving-repository.ts'
import type { UpdateDocument } from '../archive/update.ts'
import type { ConcurrencyLimit } from '../base/concurrency-limit.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { AppendPlan } from '../content/segments.ts'
import type { Content, ContentStore, Stores } from '../content/store.ts'
import type { StartDocument } from '../db/starts.ts'
import type { RunTask } from '../http/task-limits.ts'
import type { ReadThrough } from '../migration/read-through.ts'
import type { AttemptLimit } from '../security/attempt-limit.ts'
import type { Answer } from './answer.ts'
import type { Command } from './command.ts'
import type { Exchange } from './exchange.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import type { ReceiverLimits } from './limits.ts'
import type { ReceiverLog } from './receiver-log.ts'

/** A command on a repository, after every check of access. */
export interface CommandContext {
  repository: ReceivingRepository
  command: Command
  exchange: Exchange
}

export interface ContentStores {
  stores: Stores
  /** The store of new documents. */
  writeTo: ContentStore
}

export type CommandConfig = Pick<
  Config,
  'RELAY_DOCUMENT_MAX_BYTES' | 'RELAY_SEARCH_TIMEOUT_MS' | 'RELAY_WORKSPACE_MAX_BYTES' | 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE'
>

export interface CommandDeps {
  archiveDocuments: ArchiveDocuments
  receivingRepositories: Pick<ReceivingRepositories, 'find'>
  /** Documents that the upstream of a repository may have. */
  readThrough: Pick<ReadThrough, 'describe' | 'exists' | 'open' | 'keep'>
  receive: Receive
  update: UpdateDocument
  append: AppendToDocument
  /** Decides which segments the next append to a content merges. */
  planAppend(content: Content): Promise<AppendPlan>
  /** Runs the appends to one document one after another. */
  appendMutex: KeyedMutex
  certificates: Pick<Certificates, 'receive' | 'listActive'>
  /** Counts the certificates that an address sends. */
  putCertLimit: AttemptLimit
  contents: ContentStores
  /** Limits the searches that run at a time. */
  searches: ConcurrencyLimit
  runOnThread: RunTask
  launch(messages: StartDocument[]): void
  log: Log
  receiverLog: Pick<ReceiverLog, 'documentsReceived'>
  limits: CommandConfig & ReceiverLimits
}

export type CommandHandler = (context: CommandContext, deps: CommandDeps) => Promise<Answer>
