import { FunctionExpressionType, JSONPathEnvironment, JSONPathTypeError, jsonpath, type FilterFunction } from 'json-p3'
import { RE2JS } from 're2js'

// Expressions of the functions `match` and `search` are written by people, or come from the answer itself. RE2 looks at each character of a
// text once, whatever the expression is. The engine of JavaScript would try every way to match, and some have more ways than atoms.

// Instructions of a compiled expression. An expression that repeats a group 1,000 times has more.
const programMaxInstructions = 2_000
// Number of expressions, the last ones compiled in this thread, that are kept.
const keptMax = 100

/** Returns an I-Regexp (RFC 9485) as RE2 writes it. There, a dot means every character but the ends of a line. */
const toRe2 = (expression: string): string =>
  expression.replaceAll(/\\.|\[(?:\\.|[^\]\\])*\]|\./gsu, (part) => (part === '.' ? String.raw`[^\n\r]` : part))

const compiled = new Map<string, RE2JS | null>()

/** Compiles an expression. @returns null if it is invalid or too large */
const compile = (expression: string): RE2JS | null => {
  const known = compiled.get(expression)
  if (known !== undefined) return known
  let result: RE2JS | null = null
  try {
    const program = RE2JS.compile(toRe2(expression))
    if (program.programSize() <= programMaxInstructions) result = program
  } catch {
    // What RE2 does not know would not be linear.
  }
  if (compiled.size >= keptMax) compiled.clear()
  compiled.set(expression, result)
  return result
}

/** @param matches whether a text fits. A text does not fit an invalid expression, as RFC 9535 says */
const createPatternFunction = (matches: (expression: RE2JS, text: string) => boolean): FilterFunction => ({
  argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
  returnType: FunctionExpressionType.LogicalType,
  call: (text: unknown, expression: unknown) => {
    if (typeof text !== 'string' || typeof expression !== 'string') return false
    const program = compile(expression)
    return program !== null && matches(program, text)
  },
})

const patternFunctions: Record<string, FilterFunction> = {
  match: createPatternFunction((expression, text) => expression.matches(text)),
  search: createPatternFunction((expression, text) => expression.matcher(text).find()),
}

type CheckArguments = JSONPathEnvironment['checkWellTypedness']

const expressionIssue = `contains a regular expression that is none of RFC 9485, looks around or back, or is too large`

class Environment extends JSONPathEnvironment {
  protected override setupFilterFunctions(): void {
    super.setupFilterFunctions()
    for (const [name, each] of Object.entries(patternFunctions)) this.functionRegister.set(name, each)
  }

  /** Refuses a path with an expression that would never match. */
  override checkWellTypedness(...[token, args]: Parameters<CheckArguments>): ReturnType<CheckArguments> {
    const expression = Object.hasOwn(patternFunctions, token.value) ? args[1] : undefined
    if (expression instanceof jsonpath.expressions.StringLiteral && !compile(expression.value)) {
      throw new JSONPathTypeError(expressionIssue, token)
    }
    return super.checkWellTypedness(token, args)
  }
}

/** JSONPath as in RFC 9535. Answers that are nested more deeply than any of a source system find nothing. */
export const jsonPath = new Environment({ maxRecursionDepth: 64 })

/** Returns what is wrong with a path, or undefined if it can be used. */
export const jsonPathIssue = (path: string): string | undefined => {
  try {
    jsonPath.compile(path)
    return undefined
  } catch (thrown) {
    const isExpression = thrown instanceof JSONPathTypeError && thrown.message.includes(expressionIssue)
    return isExpression ? expressionIssue : 'must be a JSONPath (RFC 9535), for example $.exports.LIFNR'
  }
}
