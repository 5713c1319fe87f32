/**
 * Returns a query for the names of the repositories in the same workspace that begin with the name of the repository `own` or are its
 * beginning, and that accept signatures of an authId. The text that is signed for one of them may be read as if it was signed for another.
 * @param own alias of the table repositories in the outer query
 * @param authIds condition on `theirs.auth_id`
 */
export const similarRepositories = (own: string, authIds: string) => `
  select alike.repo_id
  from repositories as alike
  where alike.workspace_id = ${own}.workspace_id
    and alike.deleted_at is null
    and (
      alike.repo_id collate "C" > ${own}.repo_id and alike.repo_id collate "C" < ${own}.repo_id || chr(127)
      or alike.repo_id collate "C" = any (array(select left(${own}.repo_id, n) from generate_series(1, length(${own}.repo_id) - 1) as n))
    )
    and exists (
      select 1
      from certificates as theirs
      where theirs.repository_id = alike.id
        and theirs.auth_id ${authIds}
        and theirs.is_active
    )
`
