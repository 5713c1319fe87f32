import { numberParameters } from '../../src/db/database.ts'

test('each name gets one number, however often it occurs, and casts stay', () => {
  expect(numberParameters('select :one::text, :two where :one = any(:three::text[]) -- a comment: text')).toEqual({
    text: 'select $1::text, $2 where $1 = any($3::text[]) -- a comment: text',
    names: ['one', 'two', 'three'],
  })
})
