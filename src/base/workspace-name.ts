/** The name of a workspace, `{userSlug}/{workspaceSlug}`. */
export const workspaceNamePattern = /^[a-z0-9-]{1,63}\/[a-z0-9-]{1,63}$/
