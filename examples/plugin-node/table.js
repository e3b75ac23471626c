// The table: one JSON file that several assets share, `{"/docs": {"to": "https://...", "status": 307}}`.
//
// A writer reads the whole file, changes one entry, and replaces the whole file. Two writers at once would lose an
// entry, so a writer holds a lock on the folder meanwhile (flock(2): the kernel releases it when its holder ends,
// however that ends). People can use the same lock: `flock FOLDER $EDITOR FOLDER/redirects.json`.
//
// The lock orders writers, but does not keep a late one out: it may have waited for the lock, or been stopped, while
// another one changed the entry. So it also passes on what it has seen of its entry, and `replaceEntry` refuses if
// the entry differs from that (compare and swap).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import path from 'node:path';

import { stalled, transient } from './lehr/index.js';

const LOCK_SECONDS = 20;
const SAME_MOMENT = 100n * 1_000_000n; // ns; two changes of a file may share a time that is as coarse as this
const KEPT = new Map(); // path to {version, entries}: tables that have not changed since they were read

/** All entries of a table by path; none if there is no file. */
export async function readTable(file) {
  const before = Date.now();
  const version = await versionOf(file);
  const kept = KEPT.get(file);
  if (kept && version && kept.version === version) return kept.entries;
  const entries = parsed(file, await contentOf(file));
  KEPT.delete(file);
  if (version && isOld(version, before)) KEPT.set(file, { version, entries });
  return entries;
}

/**
 * Set `entries[name]` to `entry`, or delete it if `entry` is undefined, unless it is not `seen` any more.
 *
 * @param push gets a chance to stop while this waits for the lock, and before anything changes.
 * @returns false if another writer has changed the entry; then nothing was changed.
 */
export async function replaceEntry(file, name, seen, entry, push) {
  const target = await realPath(file);
  return locked(path.dirname(target), push, async () => {
    const entries = parsed(file, await contentOf(target));
    if (!same(entries.get(name), seen)) return false;
    if (entry === undefined) entries.delete(name);
    else entries.set(name, entry);
    await replaceFile(target, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
    return true;
  });
}

/** Whether two entries are equal, whatever the order of their fields. */
export function same(one, other) {
  return canonical(one) === canonical(other);
}

function canonical(value) {
  return JSON.stringify(value, (_key, part) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function parsed(file, content) {
  let table;
  try {
    table = JSON.parse(content);
  } catch {
    table = null;
  }
  if (table && typeof table === 'object' && !Array.isArray(table)) return new Map(Object.entries(table));
  throw stalled(`${file} is not a table of redirects`, {
    why: 'it is not a JSON object',
    fix: 'fix it by hand, or move it away: the entries that intent declares are written again',
  });
}

async function contentOf(file) {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return '{}';
    throw trouble(file, error);
  }
}

/** What changes whenever the file does; empty if there is no file. */
async function versionOf(file) {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await fs.stat(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(':');
  } catch {
    return ''; // reading it shows why
  }
}

/** Whether a file with this version cannot change any more without getting another one. */
function isOld(version, now) {
  return BigInt(version.split(':')[3]) + SAME_MOMENT < BigInt(now) * 1_000_000n;
}

async function replaceFile(file, content) {
  const next = `${file}.new`; // left behind by a writer that was killed, it is overwritten
  try {
    const mode = await fs.stat(file).then((stat) => stat.mode, () => 0o644);
    const handle = await fs.open(next, 'w', mode);
    try {
      await handle.writeFile(content);
      await handle.chmod(mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await fs.rename(next, file);
  } catch (error) {
    await fs.rm(next, { force: true }).catch(() => {});
    throw trouble(file, error);
  }
}

/** The file itself, if `file` is a symbolic link. */
async function realPath(file) {
  try {
    return await fs.realpath(file);
  } catch (error) {
    if (error.code !== 'ENOENT') throw trouble(file, error);
    return file;
  }
}

/** Run `work` while this process alone has the lock of `folder`, unless `push` should stop before that. */
async function locked(folder, push, work) {
  await fs.access(folder).catch((error) => {
    throw trouble(folder, error);
  });
  // The holder ends when its standard input is closed, and so when this process ends.
  const hold = ['sh', '-c', 'echo; exec cat >/dev/null'];
  const holder = spawn('flock', ['--no-fork', '--timeout', String(LOCK_SECONDS), folder, ...hold], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  holder.stdin.on('error', () => {}); // it has ended
  const giveUp = () => holder.kill();
  push.signal.addEventListener('abort', giveUp);
  const ended = once(holder, 'close').catch((error) => [error.code]); // not installed
  const held = once(holder.stdout, 'data').then(() => ['held'], () => ended);
  const [code] = await Promise.race([held, ended]);
  push.signal.removeEventListener('abort', giveUp);
  try {
    push.checkpoint();
    if (code !== 'held') throw notLocked(folder, code);
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}

function notLocked(folder, code) {
  if (code === 'ENOENT') {
    return stalled('the command flock does not exist', { fix: 'install it (package util-linux)' });
  }
  return transient(`${folder} cannot be locked`, {
    why: `flock ended with ${code}: another writer may have held the lock for ${LOCK_SECONDS} seconds`,
    fix: `see \`lslocks\` for who holds it`,
  });
}

const FIXES = {
  EISDIR: 'move the directory away, or declare another path',
  ENOTDIR: 'correct the path',
  ENOENT: 'create the folder',
  EACCES: 'allow the user that runs Lehr to read and write it',
  EPERM: 'allow the user that runs Lehr to read and write it',
  EROFS: 'mount it for writing',
  ELOOP: 'fix the symbolic links',
};

/** What an error of the file system means: for a person, if waiting is useless. */
function trouble(file, error) {
  const fix = FIXES[error.code] ?? '';
  return (fix ? stalled : transient)(`${file} cannot be used`, { why: error.code, fix });
}
