import { useState } from 'preact/hooks'
import { call, callRaw, may, type Schemas } from '../api.ts'
import { certificateText, compareFingerprint, daysUntil, expiringDays, fingerprintLines } from '../certificate.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { addressOf, navigate } from '../router.ts'
import { changed } from '../schema-form.ts'
import * as certificatesCatalogue from '../texts/certificates.ts'
import { FormFields } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { Badge, Confirm, Facts, Loaded, Notice, Time } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

type Certificate = Schemas['Certificate']
type Repository = Schemas['SingleRepository']
/** What is asked before it is done; the certificates of a repository, if no certificate is named. */
interface Question {
  change: 'activate' | 'deactivate' | 'remove' | 'deleteInactive'
  certificate?: Certificate
}

const perPage = 100

const Fingerprint = ({ hex }: { hex: string }) =>
  html`<span class="fingerprint mono">${fingerprintLines(hex).map((line) => html`<span key=${line}>${line}</span>`)}</span>`

const tones = { equal: 'good', different: 'bad', incomplete: 'info', md5: 'warn' } as const

const Compare = ({ certificate: { id, attributes } }: { certificate: Certificate }) => {
  const words = inLanguage(certificatesCatalogue)
  const [text, setText] = useState('')
  const result = compareFingerprint(text, { sha1: attributes.fingerprint_sha1, sha256: attributes.fingerprint_sha256 })
  return html`<div class="compare">
    <label class="field"
      ><span>${words.compare}</span>
      <input
        class="mono"
        id=${`compare-${id}`}
        aria-label=${words.compareOf(attributes.auth_id)}
        placeholder=${words.comparePlaceholder}
        autocomplete="off"
        spellcheck=${false}
        value=${text}
        onInput=${(event: Event) => setText((event.target as HTMLInputElement).value)}
    /></label>
    ${result !== 'empty' && html`<${Notice} tone=${tones[result]}>${words.comparison[result]}</${Notice}>`}
  </div>`
}

const dateOf = (iso: string) => new Intl.DateTimeFormat(locale(), { dateStyle: 'medium' }).format(new Date(iso))

const Validity = ({ from, to }: { from: string; to: string }) => {
  const words = inLanguage(certificatesCatalogue)
  const days = daysUntil(to, Date.now())
  return html`${words.range(dateOf(from), dateOf(to))}${' '}<span class="small"
      >${days < 0 ? html`${words.ended} <${Time} at=${to} />` : words.daysLeft(days)}</span
    >`
}

const One = ({ certificate, onAsk }: { certificate: Certificate; onAsk: (question: Question) => void }) => {
  const words = inLanguage(certificatesCatalogue)
  const { id, attributes } = certificate
  const days = daysUntil(attributes.valid_to, Date.now())
  const isActive = attributes.status === 'active'
  const button = (change: 'activate' | 'deactivate' | 'remove') =>
    html`<button
      type="button"
      class=${`button ${change === 'activate' ? 'primary' : ''}`}
      aria-label=${words.of(words[change], attributes.auth_id)}
      onClick=${() => onAsk({ change, certificate })}
    >
      ${words[change]}
    </button>`
  return html`<li class="group">
    <div class="card-head">
      <h3 id=${`certificate-${id}`} class="mono">${attributes.auth_id}</h3>
      <${Badge} status=${attributes.status} label=${words.statuses[attributes.status]} />
    </div>
    ${attributes.warnings.map(({ code }) => html`<${Notice} key=${code} tone="warn">${words.warnings[code]}</${Notice}>`)}
    ${isActive && days >= 0 && days < expiringDays && html`<${Notice} tone="warn">${words.expiring}</${Notice}>`}
    <div class="columns">
      <${Facts}
        of=${[
          [words.subject, attributes.subject || undefined],
          [words.issuer, attributes.issuer || undefined],
          [words.serial, html`<span class="mono">${attributes.serial_number}</span>`],
          [words.valid, html`<${Validity} from=${attributes.valid_from} to=${attributes.valid_to} />`],
          [
            words.key,
            `${attributes.key_algorithm.toUpperCase()}${attributes.key_bits === null ? '' : `, ${words.bits(attributes.key_bits)}`}`,
          ],
          [words.received, html`<${Time} at=${attributes.received_at} />`],
        ]}
      />
      <div>
        <${Facts}
          of=${[
            ['SHA-256', html`<${Fingerprint} hex=${attributes.fingerprint_sha256} />`],
            ['SHA-1', html`<${Fingerprint} hex=${attributes.fingerprint_sha1} />`],
          ]}
        />
        <${Compare} certificate=${certificate} />
      </div>
    </div>
    ${may('admin') && html`<div class="actions">${button(isActive ? 'deactivate' : 'activate')} ${button('remove')}</div>`}
  </li>`
}

const Ask = ({
  question: { change, certificate },
  repository,
  inactive,
  onDone,
  onClose,
}: {
  question: Question
  repository: Repository
  inactive: number
  onDone: () => void
  onClose: () => void
}) => {
  const words = inLanguage(certificatesCatalogue)
  const path = `/repositories/${repository.id}/certificates`
  if (!certificate) {
    const removeAll = async () => {
      await callRaw('DELETE', path, { query: { status: 'inactive' } })
      onDone()
    }
    return html`<${Confirm}
      isDestructive
      title=${words.deleteInactiveTitle}
      action=${words.remove}
      onConfirm=${removeAll}
      onClose=${onClose}
    >
      <p>${words.deleteInactiveText(inactive)}</p>
    </${Confirm}>`
  }
  const { attributes, id } = certificate
  const title = {
    activate: words.activateTitle,
    deactivate: words.deactivateTitle,
    remove: words.deleteTitle,
    deleteInactive: words.deleteTitle,
  }
  const text = {
    activate: words.activateText,
    deactivate: words.deactivateText,
    remove: words.deleteText,
    deleteInactive: words.deleteText,
  }
  const isLast =
    change !== 'activate' &&
    attributes.status === 'active' &&
    repository.attributes.signature_verification &&
    repository.attributes.active_certificates === 1
  const confirm = async () => {
    if (change === 'remove') await callRaw('DELETE', `${path}/${id}`)
    else await callRaw('PATCH', `${path}/${id}`, { body: { status: change === 'activate' ? 'active' : 'inactive' } })
    onDone()
  }
  const action = words[change]
  return html`<${Confirm} title=${title[change](attributes.auth_id)} action=${action} onConfirm=${confirm} onClose=${onClose}>
    <p>${text[change]}</p>
    ${change === 'activate' && html`<p><${Fingerprint} hex=${attributes.fingerprint_sha256} /></p>`}
    ${isLast && html`<${Notice} tone="warn">${words.lastActive}</${Notice}>`}
  </${Confirm}>`
}

/** Adds a certificate to a repository. */
export const CertificateForm = ({ id, onSaved }: { id: string; onSaved: () => void }) => {
  const words = inLanguage(certificatesCatalogue)
  const form = useForm({
    // A certificate is activated after its fingerprint was compared.
    fields: changed(requestFields('POST /repositories/:id/certificates'), { certificate: { input: 'lines' } }).filter(
      ({ path }) => path !== 'status',
    ),
  })
  const address = `repositories/${id}`
  const choose = async (event: Event) => {
    const [file] = (event.target as HTMLInputElement).files ?? []
    if (file) form.enter('certificate', certificateText(new Uint8Array(await file.arrayBuffer())))
  }
  const add = async (body: Values) => {
    await call('POST', `/repositories/${id}/certificates`, { body })
    onSaved()
    navigate(address)
  }
  return html`<${FormCard} form=${form} label=${words.add} title=${words.add} action=${words.add} cancelTo=${address} onSave=${add}>
    <p class="quiet">${words.addHint}</p>
    <${FormFields} form=${form} words=${words} />
    <div class="entry">
      <p class="label"><label for="certificate-file">${words.file}</label></p>
      <input id="certificate-file" type="file" accept=".pem,.crt,.cer,.der,.p7b,.p7c" onChange=${(event: Event) => void choose(event)} />
    </div>
  </${FormCard}>`
}

/** The certificates of a repository. @param onChange called after a change */
export const Certificates = ({ repository, onChange }: { repository: Repository; onChange: () => void }) => {
  const words = inLanguage(certificatesCatalogue)
  const { id } = repository
  const [question, setQuestion] = useState<Question>()
  const live = useLive(`certificates ${id}`, (signal) =>
    call<Schemas['CertificateList']>('GET', `/repositories/${id}/certificates`, { query: { per_page: perPage }, signal }),
  )
  const reload = () => {
    live.reload()
    onChange()
  }
  return html`<section aria-labelledby="certificates">
    <div class="card">
      <div class="card-head">
        <h2 id="certificates">${words.title}</h2>
        ${may('admin') && html`<a class="button" href=${addressOf(`repositories/${id}`, { add: 'certificate' })}>${words.add}</a>`}
      </div>
      <p class="quiet">${words.intro}</p>
      <${Loaded} live=${live}>
        ${() => {
          const { data } = live.data!
          const inactive = data.filter(({ attributes }) => attributes.status === 'inactive').length
          return html`${data.length === 0 && html`<p class="quiet">${words.empty}</p>`}
            <ul class="groups">
              ${data.map((certificate) => html`<${One} key=${certificate.id} certificate=${certificate} onAsk=${setQuestion} />`)}
            </ul>
            ${
              may('admin') &&
              inactive > 1 &&
              html`<button type="button" class="button" onClick=${() => setQuestion({ change: 'deleteInactive' })}>
                ${words.deleteInactive}
              </button>`
            }
            ${
              question &&
              html`<${Ask}
                question=${question}
                repository=${repository}
                inactive=${inactive}
                onDone=${reload}
                onClose=${() => setQuestion(undefined)}
              />`
            }`
        }}
      </${Loaded}>
    </div>
  </section>`
}
