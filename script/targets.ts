// Targets for docs/tutorial.md on this machine: a folder, a stand-in for an S3 store and a mail server. Everything that arrives is a file.
// The tutorial sends the invoice that is written beside them.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SMTPServer } from 'smtp-server'
import { invoicePdf } from '../src/dev/demo/sample-data.ts'

const { values: options } = parseArgs({
  options: {
    directory: { type: 'string', default: fileURLToPath(new URL('../.targets', import.meta.url)) },
    's3-port': { type: 'string', default: '9001' },
    'smtp-port': { type: 'string', default: '2525' },
    help: { type: 'boolean', default: false },
  },
})

const bucket = 'invoices'
const accessKeyId = 'tutorial'
const mailDomain = 'acme.example'

const refuse = (response: ServerResponse, status: number, code: string, message: string): void => {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(`<Error><Code>${code}</Code><Message>${message}</Message></Error>`)
}

/** Returns bucket and key of a request in path style, without parts that lead out of the folder. */
const objectOf = (path: string): string[] =>
  decodeURIComponent(path)
    .split('/')
    .filter((part) => part !== '' && part !== '.' && part !== '..')

/** Answers what one upload of a small document and a test of a destination need. It compares the access key and checks no signature. */
const answerS3 = async (request: IncomingMessage, response: ServerResponse, directory: string): Promise<void> => {
  const { pathname, searchParams } = new URL(request.url!, 'http://localhost')
  const [name, ...key] = objectOf(pathname)
  if (!request.headers.authorization?.includes(`Credential=${accessKeyId}/`))
    return refuse(response, 403, 'InvalidAccessKeyId', 'The access key id does not exist.')
  if (name !== bucket) return refuse(response, 404, 'NoSuchBucket', 'The bucket does not exist.')
  if (request.method === 'POST' && searchParams.has('uploads')) {
    const started = `<InitiateMultipartUploadResult><UploadId>${randomUUID()}</UploadId></InitiateMultipartUploadResult>`
    response.writeHead(200, { 'content-type': 'application/xml' }).end(started)
  } else if (request.method === 'DELETE' && searchParams.has('uploadId')) {
    response.writeHead(204).end()
  } else if (request.method === 'PUT' && searchParams.size <= 1 && key.length > 0) {
    const file = join(directory, ...key)
    await mkdir(dirname(file), { recursive: true })
    await pipeline(request, createWriteStream(file))
    response.writeHead(200, { etag: `"${randomUUID()}"` }).end()
  } else {
    refuse(response, 501, 'NotImplemented', 'This store is for a tutorial: it accepts objects of up to 8 MiB and nothing else.')
  }
}

/** Waits until a server listens. Ends the process if another program has the port. */
const listening = async (server: Server, port: number, option: string): Promise<void> => {
  try {
    await once(server, 'listening')
  } catch (thrown) {
    console.error(`Port ${port} cannot be used (${(thrown as NodeJS.ErrnoException).code}). Choose another one with ${option}.`)
    process.exit(1)
  }
}

const startS3Store = async (port: number, directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true })
  const server = createServer((request, response) => {
    answerS3(request, response, directory).catch((thrown: Error) => {
      console.error(thrown.message)
      response.destroy()
    })
  })
  server.listen(port, '127.0.0.1')
  await listening(server, port, '--s3-port')
}

const startMailServer = async (port: number, directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true })
  let mails = 0
  const server = new SMTPServer({
    disableReverseLookup: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    onRcptTo: ({ address }, _session, done) =>
      address.endsWith(`@${mailDomain}`)
        ? done()
        : done(Object.assign(new Error(`this server has only mailboxes of ${mailDomain}`), { responseCode: 550 })),
    onData: (message, _session, done) => {
      mails += 1
      pipeline(message, createWriteStream(join(directory, `${mails}.eml`))).then(() => done(), done)
    },
  })
  // A client may disconnect at any time.
  server.on('error', () => {})
  server.listen(port, '127.0.0.1')
  await listening(server.server, port, '--smtp-port')
}

if (options.help) {
  console.log('script/targets [--directory DIRECTORY] [--s3-port 9001] [--smtp-port 2525]')
} else {
  const { directory } = options
  const within = (name: string) => join(directory, name)
  await mkdir(within('folder'), { recursive: true })
  await startS3Store(Number(options['s3-port']), within('s3'))
  await startMailServer(Number(options['smtp-port']), within('mails'))
  await writeFile(within('invoice.pdf'), invoicePdf('1900000001'))
  const shown = (name: string) => relative('.', within(name))
  console.log(`Folder       ${shown('folder')}`)
  console.log(
    `S3 store     http://127.0.0.1:${options['s3-port']}, bucket ${bucket}, access key ${accessKeyId}. Objects are in ${shown('s3')}`,
  )
  console.log(`Mail server  127.0.0.1:${options['smtp-port']}, for addresses at ${mailDomain}. Mails are in ${shown('mails')}`)
  console.log(`An invoice   ${shown('invoice.pdf')}`)
  console.log('Press Ctrl-C to stop.')
}
