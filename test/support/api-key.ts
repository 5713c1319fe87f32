/** Splits an API key, `relay_<id>_<secret>`. The secret is base64url, so it may contain underscores too. */
export const apiKeyParts = (key: string): { id: string; secret: string } => {
  const [, id, secret] = /^relay_([^_]+)_(.+)$/.exec(key)!
  return { id: id!, secret: secret! }
}
