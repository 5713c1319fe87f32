// Runs the benchmarks one after the other, and writes their results to docs/measurements/bench/. `--only` names some of them, separated by
// commas; the results of the others stay as they are. What follows `--` is passed to each of them.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readArguments } from './support/options.ts'
import { say } from './support/report.ts'
import { resultText, type BenchResult } from './support/tables.ts'

const names = ['relay', 'accept', 'content-server', 'footprint', 'lists', 'breadth', 'large', 'latency', 'backlog', 'cost']
const { values: options, positionals } = readArguments('all', {
  allowPositionals: true,
  options: { only: { type: 'string', default: names.join() }, quick: { type: 'boolean', default: false } },
})
const outputMaxBytes = 64 * 2 ** 20

for (const name of options.only.split(',')) {
  if (!names.includes(name)) throw new Error(`There is no benchmark ${name}. Benchmarks: ${names.join(', ')}`)
  say(`${name} ...`)
  const module = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  const running = promisify(execFile)(process.execPath, [module, '--json', ...(options.quick ? ['--quick'] : []), ...positionals], {
    maxBuffer: outputMaxBytes,
  })
  running.child.stderr?.pipe(process.stderr)
  const { stdout } = await running
  // Written after each benchmark, so that a failure loses one result only. The numbers of a quick run mean nothing.
  const text = resultText(JSON.parse(stdout) as BenchResult)
  if (options.quick) console.log(text)
  else
    writeFileSync(
      new URL(`../docs/measurements/bench/${name}.md`, import.meta.url),
      `# Results of \`${name}\`\n\nWritten by \`script/bench all\`.\n${text}`,
    )
}
