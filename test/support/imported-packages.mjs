// Preloaded by a process under test: sends the name of each package of OpenTelemetry that the process loads to its parent.
import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context)
    const [, name] = /node_modules\/(@opentelemetry\/[^/]+)\//.exec(resolved.url) ?? []
    if (name) process.send(name)
    return resolved
  },
})
process.channel?.unref()
