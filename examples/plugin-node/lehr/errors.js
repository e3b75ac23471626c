// How a plugin answers that it has no result. Lehr shows these texts to people: no secrets in them.

/**
 * Why there is no result: what happened (one sentence without a full stop), the reason, and what the reader can do.
 * `code` is a stable code of the plugin's own, by which people can look the trouble up.
 */
export class Trouble extends Error {
  constructor(kind, what, { why = '', fix = '', code = '', until = 0 } = {}) {
    super(what);
    this.name = 'Trouble';
    Object.assign(this, { kind, why, fix, code, until });
  }
}

/** May pass: Lehr tries again, after growing delays. */
export const transient = (what, more) => new Trouble('KIND_TRANSIENT', what, more);
/** Trying again is useless until a person acts, or intent changes. `fix` names what to do. */
export const stalled = (what, more) => new Trouble('KIND_STALLED', what, more);
/** Not before `until` (seconds since the epoch), and not a failure. */
export const waiting = (what, until, more) => new Trouble('KIND_WAITING', what, { until, ...more });
/** A newer control plane has pushed this asset, and nothing was changed: for plugins that keep the epoch. */
export const fenced = (what, more) => new Trouble('KIND_FENCED', what, more);

/** Intent that the call did not bring along. Let it pass: Lehr makes the call again, with what is missing. */
export class Need extends Error {
  constructor(missing) {
    super('more intent is needed');
    this.name = 'Need';
    this.missing = { assets: [], outputs: [], secrets: [], ...missing };
  }
}

/** A push was asked to stop, and has reached a point where that is safe. Let it pass. */
export class Stopped extends Error {
  constructor(reason) {
    super(reason);
    this.name = 'Stopped';
  }
}
