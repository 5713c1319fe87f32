// `npm run kubernetes` writes deploy/kubernetes/document-relay.yaml. Not a part of `npm run docs`, because it needs helm, which it builds
// with Go at the first time.
import { writeFile } from 'node:fs/promises'
import { readConfig } from '../src/config/config.ts'
import { renderManifests } from '../test/support/helm.ts'
import { findHelm } from '../test/support/tools.ts'

const helm = await findHelm({ config: readConfig(), say: (line) => console.error(line) })
await writeFile(new URL('../deploy/kubernetes/document-relay.yaml', import.meta.url), await renderManifests(helm))
