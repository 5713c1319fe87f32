import type { Command } from 'commander'
import type { CommandContext } from './context.ts'
import { cellOf, jsonOption, parseDay, printProgress, printResult, tableOf, type OutputOptions } from './output.ts'

const verbs = () => import('./proof.ts')

/** Adds the commands that hand out the manifests of days. */
export const addProofVerbs = (program: Command, { inDatabase }: CommandContext) => {
  const proof = program.command('proof').description('hand out the signed manifests of days: what was received, and where it is')

  proof
    .command('export <user/workspace>')
    .description('write the manifest of a day, its signature, its certificate and its time stamp, for a check with openssl alone')
    .requiredOption('--day <date>', 'the day in UTC, like 2026-11-28', parseDay)
    .option('--output <folder>', 'the folder to write to', '.')
    .addOption(jsonOption)
    .action(async (workspace: string, { day, output, ...options }: OutputOptions & { day: string; output: string }) => {
      const { exportProof } = await verbs()
      const exported = await inDatabase((db, config) => exportProof(db, config, { workspace, day, folder: output }))
      printResult(options, exported, [...exported.files, `SHA-256 ${exported.sha256}`])
    })

  proof
    .command('list <user/workspace>')
    .description('list the manifests of a workspace, newest first')
    .addOption(jsonOption)
    .action(async (workspace: string, options: OutputOptions) => {
      const { listProofs } = await verbs()
      const manifests = await inDatabase((db) => listProofs(db, workspace))
      printResult(
        options,
        manifests,
        tableOf(
          ['DAY', 'DOCUMENTS', 'STAMPED', 'MADE (UTC)', 'SHA-256'],
          manifests.map(({ id, documents, isStamped, madeAt, sha256 }) => [
            id,
            String(documents),
            isStamped ? 'yes' : 'no',
            cellOf(madeAt),
            sha256,
          ]),
        ),
      )
    })

  proof
    .command('certificate')
    .description('print the certificate that verifies the manifests of this installation, in PEM')
    .action(async () => {
      const [{ proofCertificate }, { X509Certificate }] = await Promise.all([verbs(), import('node:crypto')])
      const certificate = await inDatabase(proofCertificate)
      process.stdout.write(certificate)
      printProgress(`SHA-256 ${new X509Certificate(certificate).fingerprint256}`)
    })
}
