import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'

const run = promisify(execFile)

/** Parts of a schema of Kubernetes that the schemas for kubeconform change. */
interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  enum?: unknown[]
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-group-version-kind'?: GroupVersionKind[]
}

interface GroupVersionKind {
  group: string
  version: string
  kind: string
}

interface CustomResourceDefinition {
  spec: { group: string; names: { kind: string }; versions: { name: string; schema: { openAPIV3Schema: Schema } }[] }
}

type Definitions = Record<string, Schema>

const mapValues = <From, To>(record: Record<string, From>, change: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))

const fileOf = (definition: string): string => `${definition}.json`

/** Changes a schema of an API to one that refuses unknown fields, and whose references are names of files. */
const strict = (schema: Schema): Schema => {
  const changed = { ...schema }
  if (schema.$ref) changed.$ref = fileOf(schema.$ref.replace('#/definitions/', ''))
  // OpenAPI 2 allows a field one type, and the API describes these as strings.
  if (schema.format === 'int-or-string') changed.type = ['integer', 'string']
  if (schema.items) changed.items = strict(schema.items)
  if (typeof schema.additionalProperties === 'object') changed.additionalProperties = strict(schema.additionalProperties)
  if (schema.properties) {
    changed.properties = mapValues(schema.properties, strict)
    if (!schema['x-kubernetes-preserve-unknown-fields']) changed.additionalProperties ??= false
  }
  return changed
}

const objectMeta = '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const quantity = 'io.k8s.apimachinery.pkg.api.resource.Quantity'

const customDefinitions = ({ spec: { group, names, versions } }: CustomResourceDefinition): Definitions =>
  Object.fromEntries(
    versions.map(({ name, schema: { openAPIV3Schema: schema } }) => [
      `${group}.${name}.${names.kind}`,
      {
        ...schema,
        // A definition says only that metadata is an object. Kubernetes knows the fields.
        properties: { ...schema.properties, metadata: { $ref: objectMeta } },
        'x-kubernetes-group-version-kind': [{ group, version: name, kind: names.kind }],
      },
    ]),
  )

/** Returns the name that kubeconform gives to the file of a kind: deployment-apps-v1.json. */
const fileOfKind = ({ group, version, kind }: GroupVersionKind): string =>
  `${[kind, ...(group ? [group.split('.')[0]!] : []), version].join('-').toLowerCase()}.json`

const writeDefinitions = async (definitions: Definitions, folder: string): Promise<void> => {
  await mkdir(folder)
  const write = (file: string, schema: Schema) => writeFile(join(folder, file), JSON.stringify(schema))
  for (const [name, definition] of Object.entries(definitions)) {
    await write(fileOf(name), strict(definition))
    for (const kind of definition['x-kubernetes-group-version-kind'] ?? []) await write(fileOfKind(kind), { $ref: fileOf(name) })
  }
}

/**
 * Adds the values that fields may have. The description of the API leaves them out; the Go code from which it is generated has them.
 * @param code zz_generated.openapi.go of the same version
 */
const addEnums = (definitions: Definitions, code: string): void => {
  let definition: Schema | undefined
  let field: Schema | undefined
  for (const line of code.split('\n')) {
    const name = /^func schema_(\w+)\(/.exec(line)?.[1]
    if (name) definition = definitions[name.replace(/^k8sio_/, 'io_k8s_').replaceAll('_', '.')]
    const property = /^\t{5}"(.+)": \{$/.exec(line)?.[1]
    if (property) field = definition?.properties?.[property]
    const values = /^\t+Enum: +\[\]interface\{\}\{(.+)\},$/.exec(line)?.[1]
    // Some values are listed twice, which a JSON schema may not do.
    if (values && field) (field.items ?? field).enum = [...new Set(JSON.parse(`[${values}]`) as unknown[])]
  }
}

/**
 * Writes the JSON schemas that kubeconform reads, in one folder for each version of Kubernetes.
 * @param api folder with the description of each version (1.27.0.json), the Go code with its enums (1.27.0.go), and the definitions of
 * custom resources (*.yaml)
 */
export const writeSchemas = async (api: string, folder: string): Promise<void> => {
  const files = await readdir(api)
  const read = (file: string) => readFile(join(api, file), 'utf8')
  const custom: Definitions = {}
  for (const file of files.filter((name) => name.endsWith('.yaml')))
    Object.assign(custom, customDefinitions(parse(await read(file)) as CustomResourceDefinition))
  for (const file of files.filter((name) => name.endsWith('.json'))) {
    const { definitions } = JSON.parse(await read(file)) as { definitions: Definitions }
    addEnums(definitions, await read(file.replace('.json', '.go')))
    // The API describes a quantity as a string, and reads `cpu: 2` too.
    definitions[quantity]!.type = ['string', 'number']
    await writeDefinitions({ ...definitions, ...custom }, join(folder, file.replace('.json', '')))
  }
}

interface Report {
  resources: { kind: string; name: string; msg: string }[]
  summary: { valid: number }
}

/**
 * Checks manifests by kubeconform: unknown fields, missing fields, values of a wrong type, unknown kinds and repeated keys.
 * @param manifests path of a YAML file
 * @param schemas folder of writeSchemas for one version of Kubernetes
 * @returns the number of valid objects, and what is wrong with the others
 */
export const checkManifests = async (kubeconform: string, manifests: string, schemas: string) => {
  const location = join(schemas, '{{.ResourceKind}}{{.KindSuffix}}.json')
  const options = ['-strict', '-summary', '-output', 'json', '-schema-location', location, manifests]
  const stdout = await run(kubeconform, options, { maxBuffer: 16 * 1024 * 1024, timeout: 60_000 }).then(
    (result) => result.stdout,
    (thrown: { stdout?: string }) => {
      if (!thrown.stdout) throw thrown
      return thrown.stdout
    },
  )
  const { resources, summary } = JSON.parse(stdout) as Report
  return { valid: summary.valid, errors: resources.map(({ kind, name, msg }) => `${kind} ${name}: ${msg}`) }
}
