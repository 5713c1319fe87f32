import { call, callRaw, may, type Schemas } from '../api.ts'
import { fieldAt, newValues, type Texts, type Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { FormField } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { Notice } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

const repositoriesWords = inLanguage(repositoriesCatalogue)

type Attributes = Schemas['Repository']['attributes']

const orders = ['fixed', 'any'] as const

const repoId = fieldAt('repo_id', 'text', { isRequired: true, maxLength: 64 })
const name = fieldAt('name', 'text', { isRequired: true, maxLength: 200 })
const signatureVerification = fieldAt('signature_verification', 'switch')
const signedParameterOrder = fieldAt('signed_parameter_order', 'choice')
const acceptsMcreate = fieldAt('accepts_mcreate', 'switch')

const hasUpstream = (texts: Texts) => texts['upstream'] === 'true'
const hasProxy = (texts: Texts) => hasUpstream(texts) && texts['upstream.proxy_url'] !== ''
const upstreamFields = [
  fieldAt('upstream', 'object'),
  fieldAt('upstream.url', 'text', { isRequired: true, when: hasUpstream }),
  fieldAt('upstream.cont_rep', 'text', { isRequired: true, when: hasUpstream }),
  fieldAt('upstream.auth_id', 'text', { when: hasUpstream }),
  fieldAt('upstream.certificate', 'lines', { when: hasUpstream }),
  fieldAt('upstream.private_key', 'lines', { isSecret: true, when: hasUpstream }),
  fieldAt('upstream.ca_certificate', 'lines', { when: hasUpstream }),
  fieldAt('upstream.proxy_url', 'text', { when: hasUpstream }),
  // A part of proxy_url in the API. Apart here, so that the address can be read and the password cannot.
  fieldAt('upstream.proxy_login', 'text', { isSecret: true, when: hasProxy }),
  fieldAt('upstream.allowed_cidrs', 'list', { when: hasUpstream }),
  fieldAt('upstream.delivers', 'switch', { when: hasUpstream }),
]

/** Returns the address of a proxy with user and password. Without new ones, it is the address that was entered: its `***` stands for those that are stored. */
const proxyUrlOf = (address: string, login: string): string => {
  if (login === '' || !URL.canParse(address)) return address
  const url = new URL(address)
  const [user = '', ...password] = login.split(':')
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password.join(':'))
  return url.href
}

/** Makes the body of a change: the API replaces the upstream as a whole. */
const toBody = (values: Values, texts: Texts): Values => {
  if (!values['upstream']) return values
  const { proxy_login: login, ...upstream } = newValues(upstreamFields, texts).values['upstream'] as Record<string, string>
  const { proxy_url: address } = upstream
  return { ...values, upstream: address && login ? { ...upstream, proxy_url: proxyUrlOf(address, login) } : upstream }
}

/** Creates or changes a repository. @param stored the repository to change, with the ETag of what is shown */
export const RepositoryForm = ({
  stored,
  onSaved,
}: {
  stored?: { id: string; attributes: Attributes; etag: string }
  onSaved?: () => void
}) => {
  const words = repositoriesWords()
  const before = stored?.attributes
  const isAdmin = may('admin')
  const form = useForm({
    fields: [
      ...(stored ? [] : [repoId]),
      name,
      signatureVerification,
      acceptsMcreate,
      ...(isAdmin ? [signedParameterOrder] : []),
      ...upstreamFields,
    ],
    stored: before,
    start: { signature_verification: false, signed_parameter_order: 'fixed', accepts_mcreate: true, upstream: null },
    toBody,
  })
  const address = stored ? `repositories/${stored.id}` : 'repositories'

  const save = async (body: Values) => {
    if (stored) {
      await callRaw('PATCH', `/repositories/${stored.id}`, { body, headers: { 'if-match': stored.etag } })
      onSaved?.()
      navigate(address)
      return
    }
    const { data } = await call<Schemas['RepositoryResponse']>('POST', '/repositories', { body })
    navigate(`repositories/${data.id}`)
  }

  const wasVerified = before?.signature_verification === true
  const isVerified = form.texts['signature_verification'] === 'true'
  const title = before ? words.editTitle(before.repo_id) : undefined
  return html`<${FormCard}
    form=${form}
    label=${title ?? words.create}
    title=${title}
    action=${before ? words.save : words.create}
    cancelTo=${address}
    onSave=${save}
  >
    ${!before && html`<${FormField} form=${form} path="repo_id" label=${words.repository} hint=${words.repoIdHint} isMono />`}
    <${FormField} form=${form} path="name" label=${words.name} hint=${words.nameHint} />
    <${FormField}
      form=${form}
      path="signature_verification"
      label=${words.signatureLabel}
      hint=${wasVerified && !isAdmin ? words.signatureAdmin : words.signatureHint}
      isDisabled=${wasVerified && !isAdmin}
    />
    ${isVerified && !wasVerified && before?.active_certificates === 0 && html`<${Notice} tone="warn">${words.signatureWithoutCertificate}</${Notice}>`}
    ${wasVerified && !isVerified && html`<${Notice} tone="warn">${words.signatureOff}</${Notice}>`}
    <${FormField}
      form=${form}
      path="accepts_mcreate"
      label=${words.mcreateLabel}
      hint=${before?.accepts_mcreate === false && !isAdmin ? words.mcreateAdmin : words.mcreateHint}
      isDisabled=${before?.accepts_mcreate === false && !isAdmin}
    />
    ${
      isAdmin &&
      html`<${FormField}
        form=${form}
        path="signed_parameter_order"
        label=${words.signedOrder}
        options=${orders.map((value) => ({ value, label: words.signedOrders[value] }))}
      />`
    }
    <${FormField} form=${form} path="upstream" label=${words.upstream} hint=${words.upstreamHint} />
    ${
      hasUpstream(form.texts) &&
      html`<${FormField} form=${form} path="upstream.url" label=${words.upstreamUrl} hint=${words.upstreamUrlHint} isMono />
        <${FormField} form=${form} path="upstream.cont_rep" label=${words.upstreamRepository} isMono />
        <${FormField} form=${form} path="upstream.auth_id" label=${words.upstreamAuthId} hint=${words.upstreamAuthIdHint} isMono />
        <${FormField} form=${form} path="upstream.certificate" label=${words.upstreamCertificate} rows=${4} />
        <${FormField} form=${form} path="upstream.private_key" label=${words.upstreamKey} hint=${words.upstreamKeyHint} rows=${4} />
        <${FormField}
          form=${form}
          path="upstream.ca_certificate"
          label=${words.upstreamAuthority}
          hint=${words.upstreamAuthorityHint}
          rows=${4}
        />
        <${FormField} form=${form} path="upstream.proxy_url" label=${words.upstreamProxy} hint=${words.upstreamProxyHint} isMono />
        ${
          hasProxy(form.texts) &&
          html`<${FormField}
            form=${form}
            path="upstream.proxy_login"
            label=${words.upstreamProxyLogin}
            hint=${words.upstreamProxyLoginHint}
          />`
        }
        <${FormField} form=${form} path="upstream.allowed_cidrs" label=${words.upstreamRanges} hint=${words.upstreamRangesHint} rows=${2} />
        <${FormField} form=${form} path="upstream.delivers" label=${words.upstreamDelivers} hint=${words.upstreamDeliversHint} />`
    }
  </${FormCard}>`
}
