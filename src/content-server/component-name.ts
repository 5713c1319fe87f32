/** Finds a component by its exact name, or else by its name in another case. Without a name, finds the document itself (`data`, `data1`). */
export const componentNamed = <Component extends { compId: string }>(
  components: readonly Component[],
  compId: string | undefined,
): Component | undefined => {
  const named = (name: string) => components.find((component) => component.compId === name)
  if (compId === undefined) return named('data') ?? named('data1')
  return named(compId) ?? components.find((component) => component.compId.toLowerCase() === compId.toLowerCase())
}
