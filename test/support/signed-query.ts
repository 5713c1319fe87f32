import type { Signer, SigningOptions } from './signer.ts'

/** A parameter as it is written in the URL. */
export type RawParameter = [name: string, raw: string]

/** Returns the time this many seconds from now, in the format of the interface. */
export const expirationIn = (seconds: number): string =>
  new Date(Date.now() + seconds * 1_000).toISOString().replaceAll(/\D/g, '').slice(0, 'YYYYMMDDHHMMSS'.length)

/** Returns a query that is signed as by a source system: over the raw values of `signed` in the order of the URL, or over `message`. */
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
