// The pushes that are under way in this process, and those that will never begin any more.

import { Stopped, fenced, transient } from './errors.js';

const MOST_REMEMBERED = 10_000;

/** A push under way, as its plugin sees it. */
export class Push {
  #report;
  #stop = new AbortController();

  /** @param operation lehr.plugin.v1.Operation; `report` sends a line of progress. */
  constructor(operation, report) {
    this.operation = operation;
    this.#report = report;
  }

  /** Aborted when the push should stop; its reason is 'superseded', 'timeout' or 'shutdown'. */
  get signal() {
    return this.#stop.signal;
  }

  /** Report progress in one line, for people who watch the push. */
  progress(message) {
    this.#report(message);
  }

  /** To be called wherever it is safe to stop: ends the push if it should. */
  checkpoint() {
    if (this.signal.aborted) throw new Stopped(this.signal.reason);
  }

  stop(reason) {
    this.#stop.abort(reason);
  }
}

export class Pushes {
  #running = new Map();
  #ended = new Memory(); // operations of which Lehr knows that they have ended
  #cancelled = new Memory(); // those that were asked to stop before they arrived, or between two of their calls

  /** Run `work(push)` as the operation of `push`. One that has ended, or was asked to stop, does not begin. */
  async run(push, work) {
    const { id } = push.operation;
    if (this.#ended.get(id)) throw fenced('this operation was given up before it arrived');
    if (this.#running.has(id)) throw transient('this operation is under way already');
    if (this.#cancelled.get(id)) throw new Stopped(this.#cancelled.get(id));
    const running = work(push);
    this.#running.set(id, { push, running });
    try {
      return await running;
    } finally {
      this.#running.delete(id);
    }
  }

  cancel(id, reason) {
    const found = this.#running.get(id);
    if (found) found.push.stop(reason);
    else this.#cancelled.set(id, reason);
  }

  /** Whether an operation may still change production. One that has ended never begins again. */
  mayRun(id) {
    if (this.#running.has(id)) return true;
    this.#ended.set(id, true);
    return false;
  }

  /** Ask all to stop, and wait until they have ended. */
  async drain(reason) {
    for (const { push } of this.#running.values()) push.stop(reason);
    await Promise.allSettled([...this.#running.values()].map(({ running }) => running));
  }
}

/** A map that forgets its oldest entries. */
class Memory extends Map {
  set(key, value) {
    if (this.size >= MOST_REMEMBERED) this.delete(this.keys().next().value);
    return super.set(key, value);
  }
}
