import { idPrefixAt } from '../../base/ids.ts'
import type { Config } from '../../config/config.ts'
import type { Transaction } from '../../db/database.ts'

// How often the source system sends to a repository, learned from the captured requests. The usual gap is the longest time between two
// requests that a check has seen. It halves in four weeks, so that the source is known to pause at night and at weekends, and a change of
// its habits is learned. Once the source is known, a gap counts for no more than the time after which it is announced as silent: an outage
// of days must not let the next one pass unnoticed.

type ActivityConfig = Pick<Config, 'NOTIFICATION_SILENCE_MIN_MS' | 'NOTIFICATION_SILENCE_GAPS' | 'NOTIFICATION_SILENCE_LEARNING_MS'>

const dayMs = 86_400_000
const halfLifeMs = 28 * dayMs
// A repository without new requests is written this often within the shortest silence, to prove that the checks are not interrupted.
const refreshesPerSilence = 4

/**
 * Records the requests since the previous check. After an interruption of the checks, for example because the relay was stopped, silence is
 * counted anew: the source could not send.
 * @param workspaces a query that returns the ids of the workspaces
 */
export const noteActivity = async (trx: Transaction, workspaces: string, config: ActivityConfig, now: Date): Promise<void> => {
  await trx.raw(
    `
    insert into repository_activity as known (repository_id, last_request_id, last_request_at, watched_since, checked_at, created_at)
    select repositories.id, request.id, request.request_at, :now, :now, :now
    from repositories
    left join repository_activity as before on before.repository_id = repositories.id
    left join lateral (
      select id, request_at
      from captured_requests
      where workspace_id = repositories.workspace_id
        and repo_id = repositories.repo_id
        and id > coalesce(last_request_id, :from)
      order by id desc
      limit 1
    ) as request on true
    where repositories.workspace_id in (${workspaces})
      and deleted_at is null
      and status = 'active'
      and (
        before.repository_id is null
        or request.id is not null
        or checked_at < :now::timestamptz - :refreshMs::float8 * interval '1 millisecond'
      )
    order by repositories.id
    on conflict (repository_id) do update
    set
      last_request_id = coalesce(excluded.last_request_id, known.last_request_id),
      last_request_at = coalesce(excluded.last_request_at, known.last_request_at),
      usual_gap_ms = case
        when excluded.last_request_at is null then known.usual_gap_ms
        else greatest(
          known.usual_gap_ms
            * power(0.5, greatest(0, 1000 * extract(epoch from excluded.last_request_at - known.last_request_at)) / :halfLifeMs::bigint),
          least(
            1000 * extract(epoch from excluded.last_request_at - greatest(known.last_request_at, known.watched_since)),
            case
              when known.created_at <= :now::timestamptz - :learningMs::bigint * interval '1 millisecond'
                then greatest(:minMs::bigint, :gaps::integer * known.usual_gap_ms)
            end
          )
        )
      end,
      watched_since = case
        when known.checked_at < :now::timestamptz - :minMs::bigint * interval '1 millisecond' then excluded.checked_at
        else known.watched_since
      end,
      checked_at = excluded.checked_at
    `,
    {
      now,
      from: idPrefixAt(new Date(now.getTime() - dayMs)),
      minMs: config.NOTIFICATION_SILENCE_MIN_MS,
      gaps: config.NOTIFICATION_SILENCE_GAPS,
      learningMs: config.NOTIFICATION_SILENCE_LEARNING_MS,
      refreshMs: config.NOTIFICATION_SILENCE_MIN_MS / refreshesPerSilence,
      halfLifeMs,
    },
  )
}
