import { plainText } from '../../../../src/base/text.ts'
import type { Check } from '../check.ts'
import { expectEqual, expectForm, expectStatus, offered, told } from '../expect.ts'
import type { Answer } from '../http.ts'
import { Deviation, NotOffered } from '../outcome.ts'

/** Lines of an answer in the form `key="value";`. @throws `Deviation` if it has another form */
export const linesOf = (answer: Answer): Record<string, string>[] => {
  const text = answer.body.toString('latin1')
  if (!text.endsWith('\r\n')) throw new Deviation(`the last line of ${answer.asked} does not end with CR LF`)
  return text
    .slice(0, -2)
    .split('\r\n')
    .map((line) => {
      if (!/^(?:\w+="(?:[^"\r\n]|"")*";)+$/.test(line)) {
        throw new Deviation(`a line of ${answer.asked} is not made of key="value"; pairs: ${plainText(line, 100)}`)
      }
      return Object.fromEntries(
        [...line.matchAll(/(\w+)="((?:[^"]|"")*)";/g)].map(([, key, value]) => [key!, value!.replaceAll('""', '"')]),
      )
    })
}

const stateOf = (answer: Answer, contRep: string) => linesOf(answer).find((line) => line['contRep'] === contRep)?.['contRepStatus']

const clockDifferenceMaxMs = 120_000

/** Checks that need no access: what an administrator asks before anything else works. */
export const serverChecks: readonly Check[] = [
  {
    id: 'server-info',
    title: 'serverInfo reports the server and the repository as running',
    profile: 'smoke',
    facts: ['server-info', 'url-form'],
    needs: [],
    remedy: 'Check the address (server, port, HTTP script) and the name of the repository, and that both are running.',
    run: async ({ ask, contRep }) => {
      const answer = await ask('serverInfo')
      expectStatus(answer, 200)
      expectForm('the Content-Type of serverInfo', answer.headers['content-type'], /^text\/plain\b/i, 'text/plain')
      const [server] = linesOf(answer)
      expectEqual('serverStatus', server?.['serverStatus'], 'running')
      expectEqual(`contRepStatus of ${contRep}`, stateOf(answer, contRep), 'running')
    },
  },
  {
    id: 'server-info-all',
    title: 'serverInfo without a repository lists all of them',
    profile: 'core',
    facts: ['server-info-all'],
    needs: [],
    remedy: 'Answer serverInfo without contRep with a line for each repository.',
    run: async ({ call, contRep, target }) => {
      const answer = await call(`serverInfo&pVersion=${target.pVersion}`)
      expectStatus(answer, 200)
      expectEqual(`contRepStatus of ${contRep}`, stateOf(answer, contRep), 'running')
    },
  },
  {
    id: 'server-info-plain',
    title: 'serverInfo needs no parameters, for a browser',
    profile: 'wire',
    facts: ['server-info-plain'],
    needs: [],
    remedy: 'Answer serverInfo without pVersion as well.',
    run: async ({ call }) => expectStatus(offered(await call('serverInfo')), 200),
  },
  {
    id: 'server-info-html',
    title: 'serverInfo answers a page for resultAs=html',
    profile: 'wire',
    facts: ['server-info-html'],
    needs: [],
    remedy: 'Answer resultAs=html of serverInfo with status 200.',
    run: async ({ ask }) => expectStatus(offered(await ask('serverInfo', { more: { resultAs: 'html' } })), 200),
  },
  {
    id: 'server-info-unknown',
    title: 'serverInfo does not report an unknown repository as running',
    profile: 'core',
    facts: ['server-info-unknown'],
    needs: [],
    remedy: 'Answer 404 to serverInfo of a repository that does not exist: the connection test of the source system must not succeed.',
    run: async ({ ask }) => {
      const contRep = 'NOSUCHREP'
      const answer = await ask('serverInfo', { contRep })
      if (answer.status !== 200) return expectStatus(answer, 400, 404)
      return expectEqual(`contRepStatus of ${contRep}`, stateOf(answer, contRep) === 'running', false)
    },
  },
  {
    id: 'server-time',
    title: 'the clock of the server is right, in UTC',
    profile: 'core',
    facts: ['server-time'],
    needs: [],
    remedy: 'Set the clock of the server (NTP), and report serverDate and serverTime in UTC: signed URLs expire by it.',
    run: async ({ ask }) => {
      const [server] = linesOf(await ask('serverInfo'))
      const [date, time] = [server?.['serverDate'], server?.['serverTime']]
      if (date === undefined || time === undefined) throw new NotOffered('serverInfo has no serverDate and serverTime')
      const theirs = Date.parse(`${date}T${time}Z`)
      if (Number.isNaN(theirs)) throw new Deviation(`serverDate "${date}" and serverTime "${time}" are not YYYY-MM-DD and HH:MM:SS`)
      const seconds = Math.round((theirs - Date.now()) / 1_000)
      if (Math.abs(seconds) * 1_000 > clockDifferenceMaxMs) {
        throw new Deviation(`the clock of the server is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead' : 'behind'}`)
      }
    },
  },
  {
    id: 'get-cert',
    title: 'getCert answers if signatures are checked',
    profile: 'wire',
    facts: ['get-cert'],
    needs: [],
    remedy: 'Begin the answer of getCert with the line security="1"; where signatures are required.',
    run: async ({ ask, isSigned }) => {
      const answer = offered(await ask('getCert', { pVersion: '0046' }), 404)
      expectStatus(answer, 200)
      const [first] = linesOf(answer)
      expectForm('security in the first line of getCert', first?.['security'], isSigned ? /^1$/ : /^[012]$/, isSigned ? '1' : '0, 1 or 2')
    },
  },
  {
    id: 'access',
    title: 'a request of the source system is accepted',
    profile: 'smoke',
    facts: ['not-found'],
    needs: [],
    remedy:
      'See the reason of the server. With 401: activate the certificate of this run, or sign with one that is active (--certificate).',
    run: async ({ target, isSigned, ask, unusedDocId }) => {
      const docId = unusedDocId()
      await target.throwAway?.activated(async () => (await ask('info', { docId })).status !== 401)
      const answer = await ask('info', { docId })
      if (answer.status === 401 && !isSigned) {
        throw new Deviation(told(answer), 'The repository requires signed requests: use --throw-away, or --certificate with --key.')
      }
      // Another check is about the answer to an unknown document.
      if (![200, 400, 404].includes(answer.status)) throw new Deviation(told(answer))
    },
  },
]
