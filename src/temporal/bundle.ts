// Run by `npm run build`: bundles the compiled workflows, so that a worker starts without bundling them.
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'
import { bundleOf } from './data-converter.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

const { code } = await bundleWorkflowCode({
  ...bundleOf(fileURLToPath(new URL('../../workflows/index.js', import.meta.url))),
  // By default, the source map contains absolute paths in its sources, in its columns and in a hash, so that the bundle differs from folder
  // to folder. A stack trace of a workflow needs file names and lines. webpack does not shorten the path of a module that it ignores.
  webpackConfigHook: (config) => ({
    ...config,
    context: root,
    devtool: 'inline-nosources-cheap-module-source-map',
    output: {
      ...config.output,
      filename: 'workflow-bundle.js',
      devtoolModuleFilenameTemplate: ({ resourcePath }: { resourcePath: string }) => resourcePath.replace(root, './'),
    },
  }),
})
await writeFile(new URL('../../workflow-bundle.js', import.meta.url), code)
