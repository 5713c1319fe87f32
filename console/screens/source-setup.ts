import { session, type Schemas } from '../api.ts'
import { html, type Children } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { sourceAddress } from '../source-address.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { Copyable, Facts, Notice } from '../ui/parts.ts'

const archiveLinkCharacters = 2

const Step = ({ title, children }: { title: string; children?: Children }) =>
  html`<li>
    <h3>${title}</h3>
    ${children}
  </li>`

/** The steps that lead the source system to a repository, with the values to enter. */
export const SourceSetup = ({ repository: { attributes } }: { repository: Schemas['SingleRepository'] }) => {
  const { setup } = inLanguage(repositoriesCatalogue)
  const { user_slug: user, workspace_slug: workspace } = session.value!
  const { host, port, script, isTls, isLocal } = sourceAddress(document.baseURI, user, workspace)
  const copyable = (text: string, hint?: string) =>
    html`<${Copyable} text=${text} />${hint !== undefined && html` <span class="small">${hint}</span>`}`
  const isUnfinished = attributes.warnings.some(({ code }) => code === 'open_to_all' || code === 'no_active_certificate')
  return html`<details class="card" open=${isUnfinished || attributes.last_request_at === null}>
    <summary><h2>${setup.title}</h2></summary>
    <ol class="steps">
      <${Step} title=${setup.step1}>
        <p>${attributes.upstream === null ? setup.oac0 : setup.oac0Change}</p>
        <${Facts}
          of=${[
            [setup.contentRepository, copyable(attributes.repo_id)],
            [setup.description, copyable(attributes.name)],
            [
              setup.area,
              attributes.repo_id.length === archiveLinkCharacters ? 'ArchiveLink' : html`<span class="quiet">${setup.areaOther}</span>`,
            ],
            [setup.storage, setup.storageValue],
            [setup.version, copyable('0047', setup.versionHint)],
            [setup.host, copyable(host, isLocal ? setup.local : undefined)],
            [setup.port, isTls ? setup.empty : copyable(port)],
            [setup.sslPort, isTls ? copyable(port) : undefined],
            [setup.script, copyable(script)],
            [setup.https, html`${isTls ? setup.httpsRequired : setup.httpsNot} <span class="small">${setup.httpsHint}</span>`],
            [setup.noSignature, setup.notTicked],
          ]}
        />
        <p class="small">${setup.otherName}</p>
        ${isTls ? html`<p>${setup.tlsTrust}</p>` : html`<${Notice} tone="warn">${setup.plain}</${Notice}>`}
      </${Step}>
      <${Step} title=${setup.step2}><p>${setup.check}</p></${Step}>
      <${Step} title=${setup.step3}>
        <p>${setup.send}</p>
        <p>${setup.export}</p>
      </${Step}>
      <${Step} title=${setup.step4}><p>${setup.compare}</p></${Step}>
      <${Step} title=${setup.step5}><p>${setup.require}</p></${Step}>
    </ol>
  </details>`
}
