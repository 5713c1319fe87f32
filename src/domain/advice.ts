const rules: [code: RegExp, what: (destination: string) => string][] = [
  [/^credentials_/, (destination) => `save new credentials at destination ${destination}`],
  [/_denied$/, (destination) => `give the account of destination ${destination} the rights it lacks`],
  [/^blocked_address$/, (destination) => `change the address of destination ${destination}, or have the relay's operator allow it`],
  [/_missing$|^config_|^wrong_|^path_|^http_4/, (destination) => `correct destination ${destination}`],
]

/** What a person is to do about a delivery that has failed, by the stable code of its last error. */
export const adviceOn = (code: string | undefined, destination: string): string => {
  const rule = rules.find(([pattern]) => pattern.test(code ?? ''))
  return `What to do: ${rule ? rule[1](destination) : `see that destination ${destination} is well again`}, then retry the document`
}
