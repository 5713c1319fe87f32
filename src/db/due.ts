/**
 * SQL: the time until `time`, in milliseconds, or null if that has come. It has come if the clock of the database says so, or if it is not
 * after the binding `:dueBy`, a timestamp or `infinity`; null if only the clock counts.
 */
export const dueInMs = (time: string) => `case
        when ${time} > greatest(now(), :dueBy::timestamptz)
        then ceil(extract(epoch from ${time} - greatest(now(), :dueBy::timestamptz)) * 1000)::float8
      end`
