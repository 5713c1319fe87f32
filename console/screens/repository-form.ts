import { useState } from 'preact/hooks'
import { call, callRaw, may, type Schemas } from '../api.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import { Checkbox, Choice, EntryForm, TextField } from '../ui/form.ts'
import { Notice } from '../ui/parts.ts'

const repositoriesWords = inLanguage(repositoriesCatalogue)

type Attributes = Schemas['Repository']['attributes']

const orders = ['fixed', 'any'] as const

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
  const [repoId, setRepoId] = useState('')
  const [name, setName] = useState(before?.name ?? '')
  const [isVerified, setVerified] = useState(before?.signature_verification ?? false)
  const [order, setOrder] = useState<string>(before?.signed_parameter_order ?? 'fixed')
  const address = stored ? `repositories/${stored.id}` : 'repositories'
  const isAdmin = may('admin')

  const save = async () => {
    const values = { name, signature_verification: isVerified, ...(isAdmin && { signed_parameter_order: order }) }
    if (stored) {
      await callRaw('PATCH', `/repositories/${stored.id}`, { body: values, headers: { 'if-match': stored.etag } })
      onSaved?.()
      navigate(address)
      return
    }
    const { data } = await call<Schemas['RepositoryResponse']>('POST', '/repositories', { body: { ...values, repo_id: repoId } })
    navigate(`repositories/${data.id}`)
  }

  const wasVerified = before?.signature_verification === true
  return html`<${EntryForm}
    label=${before ? words.editTitle(before.repo_id) : words.create}
    title=${before && words.editTitle(before.repo_id)}
    action=${before ? words.save : words.create}
    cancelTo=${address}
    onSubmit=${save}
  >
    ${
      !before &&
      html`<${TextField}
        id="repo_id"
        label=${words.repository}
        hint=${words.repoIdHint}
        value=${repoId}
        onInput=${setRepoId}
        required
        maxLength=${64}
        isMono
      />`
    }
    <${TextField} id="name" label=${words.name} hint=${words.nameHint} value=${name} onInput=${setName} required maxLength=${200} />
    <${Checkbox}
      id="signature_verification"
      label=${words.signatureLabel}
      hint=${wasVerified && !isAdmin ? words.signatureAdmin : words.signatureHint}
      isChecked=${isVerified}
      isDisabled=${wasVerified && !isAdmin}
      onChange=${setVerified}
    />
    ${isVerified && !wasVerified && before?.active_certificates === 0 && html`<${Notice} tone="warn">${words.signatureWithoutCertificate}</${Notice}>`}
    ${wasVerified && !isVerified && html`<${Notice} tone="warn">${words.signatureOff}</${Notice}>`}
    ${
      isAdmin &&
      html`<${Choice}
        id="signed_parameter_order"
        label=${words.signedOrder}
        value=${order}
        options=${orders.map((each) => [each, words.signedOrders[each]])}
        onInput=${setOrder}
      />`
    }
  </${EntryForm}>`
}
