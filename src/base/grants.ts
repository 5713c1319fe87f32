/** A value that the operator of the installation allows to workspaces, such as a folder. */
export interface Grant {
  /** The name of the only workspace that may use it. Absent: every workspace may. */
  workspace?: string
  /** The value, in which `{workspace}` stands for the name of the workspace that uses it. */
  value: string
}

/** Returns the values that a workspace may use. @param workspace `{userSlug}/{workspaceSlug}` */
export const grantedTo = (grants: readonly Grant[], workspace: string): string[] =>
  grants
    .filter((grant) => grant.workspace === undefined || grant.workspace === workspace)
    .map(({ value }) => value.replaceAll('{workspace}', workspace))
