import type { Signer, SigningOptions } from './signer.ts'

/** A parameter as it stands on the wire. */
export type RawParameter = [name: string, raw: string]

/** The time of the interface, so many seconds from now. */
export const expirationIn = (seconds: number): string =>
  new Date(Date.now() + seconds * 1_000).toISOString().replaceAll(/\D/g, '').slice(0, 'YYYYMMDDHHMMSS'.length)

/** A query as a source system signs it: over these parameters' raw values in the order of the URL, or over another message. */
export const signedQuery = async (
  signer: Signer,
  command: string,
  parameters: RawParameter[],
  { signed, message, digest }: { signed: string[]; message?: string; digest?: string },
): Promise<string> => {
  const covered = parameters.filter(([name]) => signed.includes(name)).map(([, raw]) => raw)
  const options: SigningOptions = { digest: digest ?? 'sha1', options: ['-nocerts', '-nosmimecap'] }
  const secKey = await signer.sign(message ?? covered.join(''), options)
  const tokens = parameters.map(([name, raw]) => `${name}=${raw}`)
  return [command, ...tokens, `secKey=${encodeURIComponent(secKey.toString('base64'))}`].join('&')
}
