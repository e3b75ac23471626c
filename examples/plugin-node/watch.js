// Hints when tables change, from the kernel. They may be missing, repeated or wrong: Lehr looks anyway, at each resync.

import { watch } from 'node:fs';
import path from 'node:path';

import { same } from './table.js';

export class Tables {
  #read;
  #tables = new Map(); // path to {keys, entries}: assets by the paths of their entries; what was read last
  #follow = () => {};

  /** @param read reads a table. */
  constructor(read) {
    this.#read = read;
  }

  /** A table has an entry that is the production of the asset `key`. */
  note(table, from, key) {
    if (!this.#tables.has(table)) this.#tables.set(table, { keys: new Map(), entries: undefined });
    this.#tables.get(table).keys.set(from, key);
    this.#follow(table);
  }

  /** Keys of assets whose entries have changed, until `signal` is aborted. */
  async *watch(signal) {
    const changed = new Set(); // tables
    const watchers = new Map(); // by folder
    let wake = () => {};
    const hint = (table) => {
      changed.add(table);
      wake();
    };
    const follow = (table) => {
      const folder = path.dirname(table);
      if (!watchers.has(folder)) this.#open(folder, watchers, hint);
      if (this.#tables.get(table).entries === undefined) hint(table);
    };
    signal.addEventListener('abort', () => wake());
    this.#follow = follow;
    try {
      for (const table of this.#tables.keys()) follow(table);
      while (!signal.aborted) {
        for (const table of changed) {
          changed.delete(table);
          yield* await this.#changes(table);
        }
        await new Promise((resolve) => {
          wake = resolve;
          if (changed.size || signal.aborted) resolve();
        });
      }
    } finally {
      if (this.#follow === follow) this.#follow = () => {};
      for (const watcher of watchers.values()) watcher.close();
    }
  }

  #open(folder, watchers, hint) {
    try {
      const watcher = watch(folder, (_event, name) => {
        const table = path.join(folder, name ?? '');
        if (this.#tables.has(table)) hint(table);
      });
      watchers.set(folder, watcher.on('error', () => watchers.delete(folder)));
    } catch {
      // There is no such folder yet: the next comparison tries again.
    }
  }

  /** Assets of a table whose entries are not as they were read last; all, where it could or can not be read. */
  async #changes(table) {
    const known = this.#tables.get(table);
    const before = known.entries;
    known.entries = await this.#read(table).catch(() => null);
    if (before === undefined) return []; // the first look
    const differs = ([from]) => !before || !known.entries || !same(before.get(from), known.entries.get(from));
    return [...known.keys].filter(differs).map(([, key]) => key);
  }
}
