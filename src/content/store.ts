import type { Readable } from 'node:stream'
import type { Transaction } from '../db/database.ts'

/** Bytes that are owned by a document. */
export interface Content {
  id: string
  sizeBytes: number
}

/** Bytes that have been taken in and hashed, and wait for the document that will own them. */
export interface UnownedContent extends Content {
  sha256: Buffer
  /** Ties the bytes to the transaction that commits the document: without it they are swept away some day. */
  own(trx: Transaction): Promise<void>
  /** Gives the bytes up at once. Never throws: what it cannot remove, the sweep will. */
  discard(): Promise<void>
  /** Where all of it waits in memory: how the statement that inserts its document writes it along, in place of `own`. */
  held?: HeldContent
}

export interface HeldContent {
  /** Common table expressions, which write nothing unless `onlyIf`, another one of the statement, has a row. It binds `:workspaceId`. */
  ownedWith(onlyIf: string): string
  /** Of names that begin with `content`. */
  bindings: Record<string, string | number | Buffer>
  /** It has been committed: its memory is free. */
  release(): void
}

export interface ContentStore {
  kind: 'postgres' | 's3'
  /**
   * Takes in a stream of any length, a bounded part of it in memory at any time.
   * @throws whatever the source throws; nothing is left behind then.
   */
  write(workspaceId: string, source: AsyncIterable<Uint8Array>): Promise<UnownedContent>
  /** Streams bytes `start` to `end`, both inclusive, by default all. Destroying the stream frees everything behind it. */
  read(content: Content, range?: { start?: number; end?: number }): Readable
  /** Removes bytes for good; ids that are gone already do not matter. */
  remove(contentIds: string[]): Promise<void>
}
