// From what a plugin returns and throws to the messages of plugin.proto.

import { Need, Stopped, Trouble } from './errors.js';

const MOST_TEXT = 500; // characters of an error's text that Lehr shows

/** JSON for a field of type bytes; empty for what is absent. */
const json = (value) => (value === undefined || value === null ? Buffer.alloc(0) : Buffer.from(JSON.stringify(value)));

/** @param found what `diff` has returned: `{changes, effects, lookAgain, notes, handle, outputs}`. */
export function difference({ changes = [], effects = {}, lookAgain, notes = [], handle, outputs } = {}) {
  const values = outputs && Object.entries(outputs).map(([name, value]) => [name, Buffer.from(JSON.stringify(value))]);
  return {
    changes: changes.map(({ path, intended, observed }) => ({
      path,
      intended: json(intended),
      observed: json(observed),
    })),
    effects,
    notes,
    ...given({ lookAgain, handle, outputs: values && { values: Object.fromEntries(values) } }),
  };
}

/** @param returned what `push` has returned: nothing for done, or `{result, message, retryAt, handle}`. */
export function outcome({ result = 'done', message = '', retryAt, handle } = {}) {
  return { result: `RESULT_${result.toUpperCase()}`, message, ...given({ retryAt, handle }) };
}

/** The answer `{trouble}` or `{need}` for what a call has thrown; null for what is a fault of the plugin. */
export function refusal(error, intent) {
  if (error instanceof Need) return { need: error.missing };
  if (!(error instanceof Trouble)) return null;
  const { kind, code, until } = error;
  const [what, why, fix] = [error.message, error.why, error.fix].map((text) => intent.shown(text));
  return { trouble: { kind, what, why, fix, code, until } };
}

/** The last message of a push that has thrown `error`. */
export function pushRefusal(error, intent) {
  if (error instanceof Stopped) return { outcome: outcome({ result: 'failed', message: error.message }) };
  // A fault of the plugin: it is unknown how far it came, so Lehr looks before anything else is done.
  return refusal(error, intent) ?? { outcome: outcome({ result: 'unknown', message: fault(error, intent) }) };
}

/** One line on a fault of the plugin. */
export const fault = (error, intent) => intent.shown(`${error?.name}: ${error?.message}`).slice(0, MOST_TEXT);

function given(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
