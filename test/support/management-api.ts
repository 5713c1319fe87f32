import { request } from 'undici'

/**
 * Returns a function that sends a request to the management API of a running relay, and returns the id of the answered resource.
 * @param workspace `user/workspace`
 */
export const managementApi =
  (baseUrl: string, workspace: string, key: string) =>
  async (method: 'POST' | 'PATCH', path: string, body: object): Promise<string> => {
    const { statusCode, body: answer } = await request(`${baseUrl}/api/${workspace}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await answer.text()
    if (statusCode >= 300) throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`)
    return (JSON.parse(text) as { data: { id: string } }).data.id
  }
