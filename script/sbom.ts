// Run by the Dockerfile after npm install: node script/sbom.ts. Prints the SBOM of the installed packages in the format of CycloneDX. It has
// one more component than npm sbom: the worker of Temporal's SDK, of which dist has a copy (src/temporal/copy-worker-library.ts).
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

interface Sbom {
  components: object[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const name = '@temporalio/worker'
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { version: string; integrity: string; license: string }>
}
const { version, integrity, license } = packages[`node_modules/${name}`]!
const ref = `${name}@${version}`
const sbom = JSON.parse(
  execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'], { encoding: 'utf8' }),
) as Sbom
sbom.components.push({
  'bom-ref': ref,
  type: 'library',
  name,
  version,
  scope: 'required',
  purl: `pkg:npm/${ref.replace('@', '%40')}`,
  hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex') }],
  licenses: [{ license: { id: license } }],
})
sbom.dependencies[0]!.dependsOn.push(ref)
sbom.dependencies.push({ ref, dependsOn: [] })
console.log(JSON.stringify(sbom, null, 2))
