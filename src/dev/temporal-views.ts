// Lists of the Temporal UI that an operator needs every day. docs/temporal.md has the same.

/** Queries of lists of workflows, by the name under which to save the view. */
export const temporalViews: Record<string, string> = {
  'Needs attention': "WorkflowType = 'document' and ExecutionStatus = 'Running' and RelayStatus = 'failed'",
  Retrying: "WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'retrying'",
  Held: "WorkflowType = 'delivery' and ExecutionStatus = 'Running' and RelayStatus = 'held'",
  'Failed maintenance': "WorkflowType = 'maintenance' and ExecutionStatus = 'Failed'",
}

/**
 * Returns a line for each view: its name and its address. The UI keeps saved views in the browser, so nothing can save them for its reader.
 * @param uiUrl of the server that `script/server` starts, whose namespace is `default`
 */
export const viewLines = (uiUrl: string): string[] =>
  Object.entries(temporalViews).map(
    ([name, query]) => `  ${name}: ${uiUrl}/namespaces/default/workflows?query=${encodeURIComponent(query)}`,
  )
