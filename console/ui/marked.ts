import type { Piece } from '../../src/domain/business-object.ts'
import { markPieces } from '../../src/domain/query-marks.ts'
import { html } from '../html.ts'

/** The pieces of a text, in which the words of a search are marked. @param of what the pieces are part of */
export const Marked = ({ pieces, of, query }: { pieces: readonly Piece[]; of: string; query: string | undefined }) =>
  markPieces(pieces, of, query).map(({ text, isMarked }, index) => (isMarked ? html`<mark key=${index}>${text}</mark>` : text))
