// The search of the documentation, in the browser. The index is loaded with the first search: a script, so that pages opened as files have it too.
/* global MiniSearch */
const root = document.currentScript.dataset.root
const input = document.getElementById('docs-search')
const results = document.getElementById('docs-results')
const shownResults = 12
const shownCharacters = 160
let index

const load = () =>
  (index ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = `${root}search-index.js`
    script.addEventListener('load', () => {
      const { options, sections } = globalThis.docsIndex
      const search = new MiniSearch(options)
      search.addAll(sections)
      resolve({ search, sections })
    })
    script.addEventListener('error', () => {
      index = undefined
      reject(new Error('The index of the search could not be loaded.'))
    })
    document.head.append(script)
  }))

// The text around the first word that was found.
const excerptOf = (text, terms) => {
  const lower = text.toLowerCase()
  const found = terms.map((term) => lower.indexOf(term)).filter((at) => at >= 0)
  const from = Math.max(0, Math.min(...found, lower.length) - 40)
  return found.length === 0 ? text.slice(0, shownCharacters) : `${from > 0 ? '... ' : ''}${text.slice(from, from + shownCharacters)}`
}

const itemOf = ({ page, heading, place, text, terms }) => {
  const item = document.createElement('li')
  const link = document.createElement('a')
  link.href = root + place
  link.textContent = page === heading ? page : `${page}: ${heading}`
  const excerpt = document.createElement('p')
  excerpt.textContent = excerptOf(text, terms)
  item.append(link, excerpt)
  return item
}

const message = (text) => {
  const item = document.createElement('li')
  item.textContent = text
  return item
}

const show = async () => {
  const query = input.value.trim()
  results.hidden = query === ''
  if (query === '') return results.replaceChildren()
  try {
    const { search, sections } = await load()
    if (input.value.trim() !== query) return
    const found = search.search(query).slice(0, shownResults)
    const items = found.map(({ id, terms }) => itemOf({ ...sections[id], terms }))
    results.replaceChildren(...(items.length > 0 ? items : [message('Nothing was found.')]))
  } catch (error) {
    results.replaceChildren(message(error.message))
  }
}

input.addEventListener('input', () => void show())
input.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    input.value = ''
    void show()
  }
  if (event.key === 'Enter') results.querySelector('a')?.click()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input')) return
  event.preventDefault()
  input.focus()
})
// On a narrow screen the menu stands before the page.
if (matchMedia('(max-width: 900px)').matches) document.querySelector('.menu').open = false
