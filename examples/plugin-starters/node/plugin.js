// A plugin of Lehr: keeps one line of text in a file. Replace `look` and `change` by what your production needs.
//
// lehr/ speaks the protocol, and need not be changed; lehr/index.js describes what a plugin may have besides these.

import fs from 'node:fs/promises';
import path from 'node:path';

import { serve, stalled, transient } from './lehr/index.js';

const TYPE = JSON.parse(await fs.readFile(new URL('types/line-plugin.json', import.meta.url)));

/** How production differs from intent; no changes if nothing needs doing. It only looks. */
async function diff(target, intent) {
  const line = intent.payload();
  const intended = wanted(line, target.goal);
  const observed = await look(line.path);
  if (intended === observed) return {};
  return { changes: [{ path: 'text', intended: shown(intended), observed: shown(observed) }] };
}

/** Moves production to intent. It may be repeated at any time, even after it was killed half-way. */
async function push(target, intent, push) {
  const line = intent.payload();
  const intended = wanted(line, target.goal);
  if ((await look(line.path)) === intended) return {}; // done
  push.progress(`writing ${line.path}`);
  push.checkpoint(); // ends the push here if it should stop: nothing has changed yet
  await change(line.path, intended);
  return {};
}

/** The intended content; undefined for none. */
function wanted(line, goal) {
  return goal === 'GOAL_ABSENT' ? undefined : `${line.text}\n`;
}

/** A content as a diff shows it. A diff is stored: no secrets, and nothing long. */
function shown(content) {
  return content === undefined ? undefined : content.trimEnd().slice(0, 200);
}

/** The content of production; undefined for none. */
async function look(file) {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw trouble(file, error);
  }
}

async function change(file, content) {
  try {
    if (content === undefined) {
      await fs.rm(file, { force: true });
    } else {
      const next = path.join(path.dirname(file), `.${path.basename(file)}.new`);
      await fs.writeFile(next, content);
      await fs.rename(next, file); // a reader never sees half a line
    }
  } catch (error) {
    throw trouble(file, error);
  }
}

/** `stalled` waits for a person or new intent; `transient` is tried again. */
function trouble(file, error) {
  if (error.code === 'EISDIR') return stalled(`${file} is a directory`, { fix: 'move it away' });
  return transient(`${file} cannot be used`, { why: error.code, fix: 'check the folder and its permissions' });
}

await serve({ name: 'line-plugin', version: '0.1.0', types: [TYPE], traits: { goals: ['absent'] }, diff, push });
