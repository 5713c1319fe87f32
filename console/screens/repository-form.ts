import { may, type Schemas } from '../api.ts'
import { fieldAt, type Texts, type Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { navigate } from '../router.ts'
import { changed } from '../schema-form.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { choicesOf, loadDestinations } from '../ui/choose-destination.ts'
import { FormFields } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { saveObject, type Stored } from '../ui/object-form.ts'
import { Notice } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

const repositoryFields = () => changed(requestFields('POST /repositories'), { home_destination_id: { input: 'choice' } })
// Documents at these kinds of destination can be read.
const homeTypes = ['objstore', 'blob', 'teamsite', 'drive', 'sftp', 'directory', 'content-server']

type Attributes = Schemas['Repository']['attributes']

const hasProxy = (texts: Texts) => texts['upstream'] === 'true' && texts['upstream.proxy_url'] !== ''
// A part of proxy_url in the API. Apart here, so that the address can be read and the password cannot.
const proxyLogin = fieldAt('upstream.proxy_login', 'text', { isSecret: true, when: hasProxy })

/** Returns the address of a proxy with user and password. Without new ones, it is the address that was entered: its `***` stands for those that are stored. */
const proxyUrlOf = (address: string, login: string): string => {
  if (login === '' || !URL.canParse(address)) return address
  const url = new URL(address)
  const [user = '', ...password] = login.split(':')
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password.join(':'))
  return url.href
}

/** Puts user and password into the address of the proxy. */
const toBody = (values: Values): Values => {
  if (!values['upstream']) return values
  const { proxy_login: login, ...upstream } = values['upstream'] as Record<string, string>
  const { proxy_url: address } = upstream
  return { ...values, upstream: address && login ? { ...upstream, proxy_url: proxyUrlOf(address, login) } : upstream }
}

/** Creates or changes a repository. @param stored the repository to change, with the ETag of what is shown */
export const RepositoryForm = ({ stored, onSaved }: { stored?: Stored<Attributes>; onSaved?: () => void }) => {
  const { data: destinations = [] } = useLive('destinations', loadDestinations)
  const words = inLanguage(repositoriesCatalogue)
  const before = stored?.attributes
  const isAdmin = may('admin')
  const form = useForm({
    fields: [...repositoryFields(), proxyLogin].filter(
      ({ path }) => !(stored && path === 'repo_id') && (isAdmin || path !== 'signed_parameter_order'),
    ),
    stored: before,
    etag: stored?.etag,
    wholes: ['upstream'],
    toBody,
  })
  const address = stored ? `repositories/${stored.id}` : 'repositories'

  const save = async (body: Values) => {
    const id = await saveObject('repositories', stored?.id, form, body)
    onSaved?.()
    navigate(`repositories/${id}`)
  }

  const wasVerified = before?.signature_verification === true
  const isVerified = form.texts['signature_verification'] === 'true'
  const title = before ? words.editTitle(before.repo_id) : undefined
  return html`<${FormCard}
    form=${form}
    label=${title ?? words.create}
    title=${title}
    action=${before ? undefined : words.create}
    cancelTo=${address}
    onSave=${save}
  >
    <${FormFields}
      form=${form}
      words=${words}
      more=${{
        signature_verification: {
          ...(wasVerified && !isAdmin && { hint: words.signatureAdmin, isDisabled: true }),
          after: html`${isVerified && !wasVerified && before?.active_certificates === 0 && html`<${Notice} tone="warn">${words.signatureWithoutCertificate}</${Notice}>`}
          ${wasVerified && !isVerified && html`<${Notice} tone="warn">${words.signatureOff}</${Notice}>`}`,
        },
        accepts_mcreate: before?.accepts_mcreate === false && !isAdmin ? { hint: words.mcreateAdmin, isDisabled: true } : {},
        home_destination_id: { options: choicesOf(homeTypes, destinations, before?.home_destination_id ?? undefined) },
        'upstream.allowed_cidrs': { rows: 2 },
      }}
    />
  </${FormCard}>`
}
