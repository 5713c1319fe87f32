import { useRef, useState } from 'preact/hooks'
import { toApiError, type ApiError, type ErrorDetail } from '../api.ts'
import {
  changedValues,
  isRequiredIn,
  newValues,
  placeDetails,
  textsOf,
  withWhole,
  type Field,
  type Problem,
  type Texts,
  type Values,
} from '../form.ts'
import { inLanguage } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'

/** What is wrong with a value. The relay says it in English. */
export interface Message {
  text: string
  lang?: 'en'
}

type Action = (body: Values) => Promise<void>

interface Options {
  fields: readonly Field[]
  /** The values of what the form changes. Only what differs from them is sent. */
  stored?: Values | undefined
  /** The ETag of the stored values. */
  etag?: string | undefined
  /** The values that the form of something new starts with. */
  start?: Values
  /** Paths of objects at which the form also shows messages. */
  groups?: readonly string[]
  /** Returns what is wrong with values that the fields alone accept, by path. */
  check?: (values: Values) => Record<string, string>
  /** Paths of objects that are sent whole if anything in them differs. */
  wholes?: readonly string[]
  /** Makes the body of the request from the values. */
  toBody?: (values: Values, texts: Texts) => Values
  /** True if the form says while a value is typed that it is wrong. */
  isLive?: boolean
}

/** The values of a form and what is wrong with them. */
export interface Form {
  element: { current: HTMLFormElement | null }
  /** Paths at which the form shows messages. */
  places: readonly string[]
  /** The fields that are a part of the request now. */
  fields: readonly Field[]
  fieldOf(path: string): Field
  /** Returns true if the form cannot be sent without a value. */
  isRequired(path: string): boolean
  /** Returns true if the form does not show a value at first. */
  isEmptyAtFirst(path: string): boolean
  texts: Texts
  enter(path: string, text: string): void
  /** Forgets what was entered below a path. */
  reset(path: string): void
  /** The valid values that the form would send now. */
  body: Values
  /** The headers of a change: it is refused if the values that the form was opened with have been changed. */
  headers: Readonly<Record<string, string>>
  /** Paths of the values that the form finds wrong. */
  wrong: readonly string[]
  messagesOf(path: string): readonly Message[]
  /** Name of the action that is under way. */
  busy: string | undefined
  /** Why the relay has refused the last request. */
  error: ApiError | undefined
  /** What `error` says about values that the form does not show. */
  others: readonly ErrorDetail[]
  /** True if the last action would have changed nothing. */
  isUnchanged: boolean
  /** Runs an action with the body, if nothing is wrong with it. @param except paths of values that the action does not need */
  run(name: string, action: Action, except?: readonly string[]): Promise<void>
  /** Runs an action that needs all values, if they change anything. */
  save(action: Action): Promise<void>
}

interface State {
  busy?: string
  error?: ApiError
  isUnchanged?: boolean
  /** Set once an action was asked for: paths whose problems are not shown all the same. */
  except?: readonly string[]
}

const problemText = (problem: Problem, field: Field): string => {
  const { problems } = inLanguage(formCatalogue)
  if (problem === 'range') return problems.range(field)
  return problem === 'required' && (field.input === 'choice' || field.input === 'checks') ? problems.choice : problems[problem]
}

const inEnglish = (texts: readonly string[] = []): readonly Message[] => texts.map((text) => ({ text, lang: 'en' }))

/** Name of the action that saves. */
export const saving = 'save'

/** Moves the focus to the first input that is wrong, after it has been drawn. */
const focusFirstProblem = (form: HTMLFormElement | null): void => {
  requestAnimationFrame(() => {
    const input = form?.querySelector<HTMLElement>('[aria-invalid="true"]')
    const hidden = input?.closest('details')
    if (hidden) hidden.open = true
    input?.focus()
  })
}

/** Keeps what is entered in a form, finds what differs from the stored values, and assigns the messages of the relay to the fields. */
export const useForm = ({ fields, groups = [], check, wholes = [], toBody, isLive = false, ...origin }: Options): Form => {
  const element = useRef<HTMLFormElement>(null)
  // What was stored when the form was opened: that is what a change refers to.
  const [{ stored, start, etag }] = useState(origin)
  const [entered, setEntered] = useState<Texts>({})
  const [state, setState] = useState<State>({})

  const first = textsOf(fields, stored ?? start)
  const texts = { ...first, ...entered }
  const { values, problems } = stored ? changedValues(fields, texts, first) : newValues(fields, texts)
  const found: Record<string, string> = { ...check?.(newValues(fields, texts).values) }
  for (const field of fields) {
    const problem = problems[field.path]
    if (problem !== undefined) found[field.path] = problemText(problem, field)
  }
  const sent = withWhole(values, wholes, fields, texts)
  const body = toBody ? toBody(sent, texts) : sent
  const isUnchanged = stored !== undefined && Object.keys(body).length === 0
  const places = [...fields.map(({ path }) => path), ...groups]
  const { at, others } = placeDetails(state.error?.details ?? [], places)

  const isShown = (path: string) => (state.except ? !state.except.includes(path) : isLive && problems[path] !== 'required')
  const messagesOf = (path: string): readonly Message[] => {
    if (found[path] !== undefined && isShown(path)) return [{ text: found[path] }]
    return inEnglish(at[path])
  }

  const run: Form['run'] = async (name, action, except = []) => {
    if (state.busy !== undefined) return
    if (Object.keys(found).some((path) => !except.includes(path))) {
      setState({ except })
      focusFirstProblem(element.current)
      return
    }
    if (name === saving && isUnchanged) {
      setState({ except, isUnchanged })
      return
    }
    setState({ busy: name, except })
    try {
      await action(body)
      setState({})
    } catch (thrown) {
      setState({ except, error: toApiError(thrown) })
      focusFirstProblem(element.current)
    }
  }

  const fieldOf = (path: string) => fields.find((field) => field.path === path)!
  return {
    element,
    places,
    fields: fields.filter(({ when }) => when?.(texts) !== false),
    fieldOf,
    isRequired: (path) => isRequiredIn(fieldOf(path), texts),
    isEmptyAtFirst: (path) => first[path] === '',
    texts,
    enter: (path, text) => setEntered((before) => ({ ...before, [path]: fieldOf(path).takenFrom?.exec(text)?.[1] ?? text })),
    reset: (path) => setEntered((before) => Object.fromEntries(Object.entries(before).filter(([each]) => !each.startsWith(`${path}.`)))),
    body,
    headers: etag === undefined ? {} : { 'if-match': etag },
    wrong: Object.keys(found),
    messagesOf,
    busy: state.busy,
    error: state.error,
    others,
    isUnchanged: isUnchanged && state.isUnchanged === true,
    run,
    save: (action) => run(saving, action),
  }
}

/** Shows at the fields of a form what another request, such as that of a preview, has said about the same values. */
export const withRefusal = (form: Form, error: ApiError | undefined): Form => {
  const { at } = placeDetails(error?.details ?? [], form.places)
  const messagesOf = (path: string) => {
    const own = form.messagesOf(path)
    return own.length > 0 ? own : inEnglish(at[path])
  }
  return { ...form, messagesOf }
}
