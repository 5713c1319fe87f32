// Checks the direction of imports by the rules of .dependency-cruiser.js, and prints what violates them: npm run arrows
import { cruise, format, type ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'

// dependency-cruiser asks for a TypeScript compiler older than 7 in every project of TypeScript. It needs none here, because swc parses.
const falseAlarm = 'missing-tsc-transpiler'

const options = await extractDepcruiseOptions('./.dependency-cruiser.js')
const { output } = await cruise(
  ['src', 'workflows', 'activities', 'console', 'clients/check-source/main.ts', 'clients/check-source/src'],
  options,
)
const result = output as ICruiseResult
const { environment } = result.summary
if (environment?.issues) environment.issues = environment.issues.filter(({ name }) => name !== falseAlarm)
const report = await format(result, { outputType: 'err' })
process.stdout.write(report.output as string)
process.exitCode = report.exitCode
