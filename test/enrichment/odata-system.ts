// Contract double of an OData version 2 service of S/4HANA on a real socket, written from the documented requests and answers: a key in
// parentheses, the entity in `d`, dates as `/Date(...)/`, and errors with a status and `error.message.value`.
import { startHttpTarget } from '../support/http-target.ts'

interface Entity {
  status?: number
  contentType?: string
  /** An object is sent as JSON. */
  body: object | Buffer
}

/** Starts the service. @param entities answers by the decoded path, without the query */
export const startODataSystem = async (entities: Record<string, Entity>, logon = { user: 'RELAY', password: 'canary-odata' }) => {
  const target = await startHttpTarget()
  const expected = `Basic ${Buffer.from(`${logon.user}:${logon.password}`).toString('base64')}`
  target.answerWith(({ url, headers }, response) => {
    if (headers.authorization !== expected) {
      response.writeHead(401).end('<html>Logon failed</html>')
      return
    }
    const path = decodeURIComponent(url.split('?', 1)[0]!)
    const notFound = { error: { code: '/IWBEP/CM_MGW_RT/020', message: { lang: 'en', value: 'Resource not found' } } }
    const { status = 200, contentType = 'application/json', body } = entities[path] ?? { status: 404, body: notFound }
    response.writeHead(status, { 'content-type': contentType }).end(Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
  return { ...target, credentials: { username: logon.user, password: logon.password } }
}
