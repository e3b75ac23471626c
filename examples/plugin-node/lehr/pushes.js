// The pushes that are under way in this process, and those that will never begin any more.

import { Stopped, fenced, transient } from './errors.js';

const MOST_ENDED = 10_000;

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
  #ended = new Set();

  /** Run `work(push)` as the operation of `push`. An operation that Lehr has given up never begins. */
  async run(push, work) {
    const { id } = push.operation;
    if (this.#ended.has(id)) throw fenced('this operation was given up before it arrived');
    if (this.#running.has(id)) throw transient('this operation is under way already');
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
    else this.#end(id);
  }

  /** Whether an operation may still change production. One that has ended never begins again. */
  mayRun(id) {
    if (this.#running.has(id)) return true;
    this.#end(id);
    return false;
  }

  /** Ask all to stop, and wait until they have ended. */
  async drain(reason) {
    for (const { push } of this.#running.values()) push.stop(reason);
    await Promise.allSettled([...this.#running.values()].map(({ running }) => running));
  }

  #end(id) {
    this.#ended.add(id);
    if (this.#ended.size > MOST_ENDED) this.#ended.delete(this.#ended.values().next().value);
  }
}
