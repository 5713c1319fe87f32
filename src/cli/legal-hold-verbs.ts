import type { Command } from 'commander'
import type { LegalHold, LegalHolds } from '../archive/legal-holds.ts'
import type { CommandContext } from './context.ts'
import { cellOf, jsonOption, printResult, tableOf, type OutputOptions } from './output.ts'

interface SetOptions extends OutputOptions {
  repo?: string
  doc?: string
  objectType?: string
  objectId?: string
  reason: string
}

/** Adds the commands that set, list and lift legal holds. */
export const addLegalHoldVerbs = (program: Command, { inDatabase }: CommandContext) => {
  /** Does something with the holds of a workspace. */
  const withHolds = async <T>(name: string, act: (holds: LegalHolds, workspaceId: string) => Promise<T>): Promise<T> => {
    const [{ createLegalHolds }, { findWorkspace }] = await Promise.all([
      import('../archive/legal-holds.ts'),
      import('../workspace/administration.ts'),
    ])
    return inDatabase(async (db) => act(createLegalHolds(db), (await findWorkspace(db, name)).id))
  }
  const print = async (options: OutputOptions, hold: LegalHold, textOf: (subject: string) => string[]) => {
    const { subjectText } = await import('../archive/legal-holds.ts')
    const { snakeCased } = await import('../domain/casing.ts')
    printResult(options, snakeCased(hold), textOf(subjectText(hold)))
  }
  const hold = program.command('hold').description('manage legal holds: what is on hold is not removed')
  hold
    .command('set <user/workspace>')
    .description(
      'put a document (--repo and --doc), a repository (--repo) or a business object (--object-type and --object-id) on legal hold',
    )
    .option('--repo <repo_id>', 'the repository, or that of the document')
    .option('--doc <docId>', 'the document, with all its components and versions')
    .option('--object-type <type>', 'type of the business object, such as BKPF')
    .option('--object-id <key>', 'key of the business object, as documents have it; leading zeros do not matter')
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(jsonOption)
    .action(async (name: string, { repo, doc, objectType, objectId, reason, ...options }: SetOptions) => {
      const [{ systemActor }, { documentsText }] = await Promise.all([import('../db/audit.ts'), import('../archive/legal-holds.ts')])
      const subject = { repoId: repo, docId: doc, erpObjectType: objectType, erpObjectId: objectId }
      const set = await withHolds(name, (holds, id) => holds.set(id, { ...subject, reason }, systemActor))
      await print(options, set, (named) => [
        `On legal hold: ${named}: ${set.id}`,
        `It applies to ${documentsText(set.documents)}, and to those that arrive later.`,
        ...(set.documents === 0 ? ['Is this the type and the key, or the name, that the documents have?'] : []),
      ])
    })
  hold
    .command('list <user/workspace>')
    .description('list the legal holds of a workspace, newest first')
    .addOption(jsonOption)
    .action(async (name: string, options: OutputOptions) => {
      const [{ subjectText }, { snakeCased }, { allOf }] = await Promise.all([
        import('../archive/legal-holds.ts'),
        import('../domain/casing.ts'),
        import('../db/page.ts'),
      ])
      const items = await withHolds(name, (holds, id) => allOf((page) => holds.list(id, page)))
      printResult(
        options,
        items.map(snakeCased),
        tableOf(
          ['SET (UTC)', 'BY', 'SUBJECT', 'DOCUMENTS', 'REASON', 'ID'],
          items.map((each) => [cellOf(each.createdAt), each.setBy ?? '-', subjectText(each), String(each.documents), each.reason, each.id]),
        ),
      )
    })
  hold
    .command('lift <user/workspace> <id>')
    .description('lift a legal hold: what no other hold applies to can be removed again')
    .requiredOption('--reason <text>', 'why, for the audit log')
    .addOption(jsonOption)
    .action(async (name: string, id: string, { reason, ...options }: OutputOptions & { reason: string }) => {
      const { systemActor } = await import('../db/audit.ts')
      const lifted = await withHolds(name, (holds, workspaceId) => holds.lift(workspaceId, id, reason, systemActor))
      await print(options, lifted, (subject) => [`Lifted the legal hold on ${subject}: ${lifted.id}`])
    })
}
