// A plugin of Lehr for redirects: entries of a table that several assets share.
//
//   plugin.js     what differs, and what a push does: start here
//   table.js      the file: read, locked, replaced
//   password.js   hashes of passwords
//   watch.js      hints when a table changes
//   lehr/         the protocol, without a word about redirects: copy it for a plugin of your own

import fs from 'node:fs/promises';

import { serve, stalled } from './lehr/index.js';
import { hashed, matches } from './password.js';
import { readTable, replaceEntry } from './table.js';
import { Tables } from './watch.js';

const TYPE = JSON.parse(await fs.readFile(new URL('types/redirect.json', import.meta.url)));
const DIFFERS = { intended: 'as in the secret', observed: 'different' };
const MOST_SHOWN = 200; // characters
const tables = new Tables(readTable); // those that were compared: a hint of what to watch

/** How the table differs from the redirect. It only looks. */
async function diff(target, intent, read = readTable) {
  const redirect = intent.payload();
  const wanted = intended(redirect, target.goal);
  const password = wanted && redirect.password && intent.secret(redirect.password);
  tables.note(redirect.table, redirect.from, { partition: target.partition, id: target.id });
  const found = (await read(redirect.table)).get(redirect.from);
  return { changes: await differences(wanted, password, found) };
}

/** Many comparisons at once read each table once. */
function batch() {
  const read = new Map();
  return (target, intent) =>
    diff(target, intent, (file) => {
      if (!read.has(file)) read.set(file, readTable(file));
      return read.get(file);
    });
}

/** Move the table to the redirect. Everything that may be missing is asked for before anything changes. */
async function push(target, intent, push) {
  const redirect = intent.payload();
  const wanted = intended(redirect, target.goal);
  const password = wanted && redirect.password && intent.secret(redirect.password);
  const found = (await readTable(redirect.table)).get(redirect.from);
  if ((await differences(wanted, password, found)).length === 0) return {};
  const entry = password ? { ...wanted, password: await hashed(password) } : wanted;
  push.progress(`waiting for the lock of ${redirect.table}`);
  const { table, from } = redirect;
  if (await replaceEntry(table, from, found, entry, push)) return {};
  return { result: 'failed', message: `another writer has changed ${from} since this push began` };
}

/** The entry of a redirect, without its password; undefined for none. */
function intended({ to, permanent }, goal) {
  return goal === 'GOAL_ABSENT' ? undefined : { to, status: permanent ? 308 : 307 };
}

async function differences(wanted, password, found) {
  if (wanted === undefined && found === undefined) return [];
  if (wanted === undefined || !isEntry(found)) return [{ path: 'entry', ...ends(shown(wanted), shown(found)) }];
  const { password: hash, ...rest } = found;
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(rest)])].sort();
  const changes = names
    .filter((name) => JSON.stringify(wanted[name]) !== JSON.stringify(rest[name]))
    .map((name) => ({ path: name, ...ends(wanted[name], excerpt(rest[name])) }));
  if (!password && hash !== undefined) changes.push({ path: 'password', ...ends(undefined, 'set') });
  if (password && hash === undefined) changes.push({ path: 'password', ...ends('set', undefined) });
  if (password && hash !== undefined && !(await matches(password, hash))) {
    changes.push({ path: 'password', ...DIFFERS });
  }
  return changes;
}

const ends = (intended, observed) => ({ intended, observed });
const excerpt = (value) => (JSON.stringify(value)?.length > MOST_SHOWN ? 'something longer' : value);
const isEntry = (found) => typeof found === 'object' && found !== null && !Array.isArray(found);

/** An entry in one line; undefined for none. */
function shown(entry) {
  if (entry === undefined) return undefined;
  return isEntry(entry) ? `${entry.status} ${entry.to}`.slice(0, MOST_SHOWN) : 'not a redirect';
}

/** Drafts of redirects for the entries of tables, whose paths are the query. */
async function* discover(query) {
  const ids = new Set();
  for (const table of query) {
    if (!table.startsWith('/')) throw stalled(`${table} is not an absolute path`, { fix: 'write one' });
    for (const [from, entry] of await readTable(table)) {
      yield { ...draft(table, from, entry), id: freeId(from, ids), type: TYPE.name };
    }
  }
}

function draft(table, from, entry) {
  const { to, status, password, ...rest } = isEntry(entry) ? entry : {};
  const payload = { table, from, to, ...(status === 308 && { permanent: true }) };
  const others = Object.keys(rest);
  let obstacle = '';
  if (!isEntry(entry)) obstacle = 'it is not a redirect';
  else if (![307, 308].includes(status)) obstacle = `its status ${status} cannot be declared`;
  else if (password !== undefined) obstacle = 'its password is not known: declare where it is kept';
  else if (others.length) obstacle = `${others.join(', ')} would be removed`;
  return { payload, obstacle };
}

function freeId(from, taken) {
  const words = from.split(/[^A-Za-z0-9_]+/).filter(Boolean);
  const id = ['redirect', ...words].join('/').slice(0, 190);
  let free = id;
  for (let number = 2; taken.has(free); number += 1) free = `${id}-${number}`;
  taken.add(free);
  return free;
}

await serve({
  name: 'redirects',
  version: '1.0.0',
  types: [TYPE],
  traits: { fencing: 'compare-and-swap', goals: ['absent'], turns: 64, pushTimeout: 60 },
  diff,
  batch,
  push,
  watch: (signal) => tables.watch(signal),
  discover,
});
