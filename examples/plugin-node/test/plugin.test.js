import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

import { COOKIE, call, compared, folder, messages, program, pushed, request, started } from './host.js';

const DONE = 'RESULT_DONE';

async function world(test) {
  const plugin = await started(test);
  const table = path.join(await folder(test), 'redirects.json');
  return { ...plugin, table, redirect: { table, from: '/docs', to: 'https://docs.example', permanent: false } };
}

const entries = async (table) => JSON.parse(await fs.readFile(table));

test('a push makes the entry, and keeps the others as they are', async (t) => {
  const { client, table, redirect } = await world(t);
  await fs.writeFile(table, '{"/other": {"to": "/", "status": 301, "note": "mine"}}');
  assert.deepEqual(await compared(client, redirect), [['entry', '"307 https://docs.example"', '']]);
  assert.equal((await pushed(client, redirect)).outcome.result, DONE);
  assert.deepEqual(await compared(client, redirect), []);
  assert.deepEqual(await entries(table), {
    '/other': { to: '/', status: 301, note: 'mine' },
    '/docs': { to: 'https://docs.example', status: 307 },
  });
});

test('a turndown removes the entry, and no other', async (t) => {
  const { client, table, redirect } = await world(t);
  await fs.writeFile(table, '{"/other": {}, "/docs": {"to": "/", "status": 307}}');
  assert.equal((await pushed(client, redirect, { goal: 'GOAL_ABSENT' })).outcome.result, DONE);
  assert.deepEqual(await entries(table), { '/other': {} });
  const refused = await pushed(client, redirect, { goal: 'GOAL_DRAINED' });
  assert.equal(refused.trouble.kind, 'KIND_STALLED');
});

test('a hundred pushes at once lose no entry', async (t) => {
  const { client, table, redirect } = await world(t);
  const from = Array.from({ length: 100 }, (_, number) => `/page/${number}`);
  const ends = await Promise.all(
    from.map((name) => pushed(client, { ...redirect, from: name }, { operation: name, id: name.slice(1) })),
  );
  assert.deepEqual(new Set(ends.map(({ outcome }) => outcome.result)), new Set([DONE]));
  assert.deepEqual(Object.keys(await entries(table)).sort(), from.sort());
});

test('a password is asked for, kept as a hash, and never shown', async (t) => {
  const { client, table, redirect } = await world(t);
  const locked = { ...redirect, password: { secret: 'env:PASSWORD' } };
  const { need } = await call(client, 'diff', request(locked));
  assert.deepEqual(need.secrets, ['env:PASSWORD']);
  assert.deepEqual((await pushed(client, locked)).need.secrets, ['env:PASSWORD']);
  const secrets = [{ reference: 'env:PASSWORD', value: Buffer.from('hunter2') }];
  assert.equal((await pushed(client, locked, { secrets })).outcome.result, DONE);
  assert.deepEqual(await compared(client, locked, { secrets }), []);
  assert.ok(!(await fs.readFile(table, 'utf8')).includes('hunter2'));
  const others = [{ reference: 'env:PASSWORD', value: Buffer.from('hunter3') }];
  assert.deepEqual(await compared(client, locked, { secrets: others }), [
    ['password', '"as in the secret"', '"different"'],
  ]);
  assert.deepEqual(await compared(client, redirect), [['password', '', '"set"']]);
});

test('a push that waits for the lock is under way until it is cancelled', async (t) => {
  const { client, table, redirect } = await world(t);
  const { spawn } = await import('node:child_process');
  const holder = spawn('flock', ['--no-fork', path.dirname(table), 'sh', '-c', 'echo; exec cat']);
  t.after(() => holder.kill());
  await once(holder.stdout, 'data');
  const operation = { id: 'operation-1' };
  const stream = client.push(request(redirect));
  await once(stream, 'data'); // progress: it waits
  assert.equal((await call(client, 'status', { operation })).state, 'STATE_RUNNING');
  const ended = messages(stream);
  await call(client, 'cancel', { operation, reason: 'REASON_SUPERSEDED' });
  const [{ outcome }] = await ended;
  assert.deepEqual([outcome.result, outcome.message], ['RESULT_FAILED', 'superseded']);
  assert.equal((await call(client, 'status', { operation })).state, 'STATE_ENDED');
  await assert.rejects(fs.readFile(table), { code: 'ENOENT' });
});

test('an entry that another writer has changed meanwhile is left alone', async (t) => {
  const { client, table, redirect } = await world(t);
  const { spawn } = await import('node:child_process');
  const holder = spawn('flock', ['--no-fork', path.dirname(table), 'sh', '-c', 'echo; exec cat']);
  await once(holder.stdout, 'data');
  const stream = client.push(request(redirect));
  await once(stream, 'data');
  await fs.writeFile(table, '{"/docs": {"to": "/newer", "status": 307}}');
  holder.stdin.end();
  const { outcome } = (await messages(stream)).at(-1);
  assert.equal(outcome.result, 'RESULT_FAILED');
  assert.match(outcome.message, /another writer/);
  assert.deepEqual(await entries(table), { '/docs': { to: '/newer', status: 307 } });
});

test('an operation that was given up never begins', async (t) => {
  const { client, redirect, table } = await world(t);
  const operation = { id: 'operation-1' };
  assert.equal((await call(client, 'status', { operation })).state, 'STATE_ENDED');
  assert.equal((await pushed(client, redirect)).trouble.kind, 'KIND_FENCED');
  await assert.rejects(fs.readFile(table), { code: 'ENOENT' });
});

test('a push that was overtaken before it arrived does not begin', async (t) => {
  const { client, redirect, table } = await world(t);
  await call(client, 'cancel', { operation: { id: 'operation-1' }, reason: 'REASON_SUPERSEDED' });
  const { outcome } = await pushed(client, redirect);
  assert.deepEqual([outcome.result, outcome.message], ['RESULT_FAILED', 'superseded']);
  await assert.rejects(fs.readFile(table), { code: 'ENOENT' });
});

test('what is in the way is named, with what to do', async (t) => {
  const { client, table, redirect } = await world(t);
  for (const [put, away] of [
    [() => fs.mkdir(table), () => fs.rmdir(table)],
    [() => fs.writeFile(table, '{'), () => fs.rm(table)],
    [() => fs.writeFile(table, '[]'), () => fs.rm(table)],
  ]) {
    await put();
    for (const { trouble } of [await call(client, 'diff', request(redirect)), await pushed(client, redirect)]) {
      assert.equal(trouble.kind, 'KIND_STALLED');
      assert.ok(trouble.what && trouble.why && trouble.fix);
    }
    await away();
  }
  const nowhere = { ...redirect, table: `${path.dirname(table)}/none/redirects.json` };
  assert.match((await pushed(client, nowhere, { operation: 'operation-2' })).trouble.fix, /create the folder/);
});

test('entries that are not redirects differ, and are replaced', async (t) => {
  const { client, table, redirect } = await world(t);
  for (const [number, entry] of ['null', '"x"', '[]', '{"to": {}, "status": 1}'].entries()) {
    await fs.writeFile(table, `{"/docs": ${entry}}`);
    assert.ok((await compared(client, redirect)).length, entry);
    assert.ok((await compared(client, redirect, { goal: 'GOAL_ABSENT' })).length, entry);
    const { outcome } = await pushed(client, redirect, { operation: `operation-${number}` });
    assert.equal(outcome.result, DONE);
    assert.deepEqual(await compared(client, redirect), []);
  }
});

test('killed in the middle of pushes, it leaves a whole table and no lock', async (t) => {
  const { client, table, redirect, process } = await world(t);
  const one = (number) => [{ ...redirect, from: `/${number}` }, { operation: `operation-${number}` }];
  const all = Array.from({ length: 30 }, (_, number) => one(number));
  const lost = all.map((request) => pushed(client, ...request).catch(() => null));
  await lost[3];
  process.kill('SIGKILL');
  await Promise.all(lost);
  const before = await entries(table);
  const next = await started(t);
  for (const [payload, how] of all) {
    const { outcome } = await pushed(next.client, payload, how);
    assert.equal(outcome.result, DONE);
  }
  assert.equal(Object.keys(await entries(table)).length, 30);
  assert.ok(Object.keys(before).length >= 1);
});

test('many diffs are those of one by one', async (t) => {
  const { client, redirect } = await world(t);
  const [wanted, gone] = [request(redirect), request(redirect, { goal: 'GOAL_ABSENT' })];
  const missing = { ...wanted, intent: { assets: [{ id: 'docs', exists: false }] } };
  const requests = [wanted, gone, missing];
  const answers = await messages(client.diffMany({ requests }));
  for (const { index, response } of answers) {
    assert.deepEqual(response, await call(client, 'diff', requests[index]));
  }
  assert.equal(answers.length, 3);
  assert.equal(answers[2].response.trouble.kind, 'KIND_STALLED');
});

test('a watch is alive, and names the assets whose entries change', async (t) => {
  const { client, table, redirect } = await world(t);
  await compared(client, redirect);
  const stream = client.watch({});
  const next = stream[Symbol.asyncIterator]();
  assert.equal((await next.next()).value.event, 'alive');
  await call(client, 'status', { operation: { id: 'x' } }); // the watch has begun
  const until = setInterval(() => fs.writeFile(table, `{"/docs": {"to": "${Date.now()}"}}`), 50);
  const { value } = await next.next();
  clearInterval(until);
  assert.deepEqual(value.changed, { partition: 'test', id: 'docs' });
  stream.on('error', () => {}).cancel();
});

test('discovery drafts what a push would not change', async (t) => {
  const { client, table } = await world(t);
  const found = {
    '/a': { to: '/b', status: 307 },
    '/a/': { to: '/b', status: 308 },
    '/c': { to: '/b', status: 301 },
    '/d': { to: '/b', status: 307, password: 'scrypt:0:0' },
    '/e': 'no redirect',
  };
  await fs.writeFile(table, JSON.stringify(found));
  const drafts = await messages(client.discover({ query: [table], partition: 'test' }));
  assert.deepEqual(drafts.map(({ found: { id } }) => id).slice(0, 2), ['redirect/a', 'redirect/a-2']);
  for (const { found: draft } of drafts) {
    const payload = JSON.parse(draft.payload);
    if (draft.obstacle) assert.ok(['/c', '/d', '/e'].includes(payload.from));
    else assert.deepEqual(await compared(client, { permanent: false, ...payload }), []);
  }
  const [{ trouble }] = await messages(client.discover({ query: ['here'], partition: 'test' }));
  assert.equal(trouble.kind, 'KIND_STALLED');
});

test('it answers the handshake and health, and describes itself', async (t) => {
  const { client, health, line, sockets } = await world(t);
  assert.equal(line, `1|1|unix|${sockets}/plugin.sock|grpc`);
  assert.equal(await call(health, 'check', Buffer.alloc(0)), 1);
  const { types, traits } = await call(client, 'describe', {});
  assert.equal(types[0].name, 'example.Redirect');
  assert.equal(JSON.parse(types[0].schema).type, 'object');
  assert.deepEqual(types[0].secrets, ['/password']);
  assert.deepEqual(traits.goals, ['GOAL_ABSENT']);
  assert.deepEqual([traits.batches, traits.watches, traits.discovers], [true, true, true]);
});

test('started by a person, it explains itself and exits with 1', async (t) => {
  const process = program(t, {});
  const [sentence] = await once(process.stderr, 'data');
  assert.match(String(sentence), /is a plugin of Lehr/);
  assert.deepEqual(await process.ended, [1, null]);
});

test('it refuses a Lehr that speaks another protocol', async (t) => {
  const more = { PLUGIN_PROTOCOL_VERSIONS: '2,3', PLUGIN_UNIX_SOCKET_DIR: await folder(t) };
  const process = program(t, { ...COOKIE, ...more });
  assert.match(String(await once(process.stderr, 'data')), /speaks version 1/);
  assert.deepEqual(await process.ended, [1, null]);
});

for (const [how, end] of [
  ['SIGTERM', (process) => process.kill('SIGTERM')],
  ['the end of Lehr', (process) => process.stdin.end()],
]) {
  test(`after ${how} it ends what is under way, and exits with 0`, async (t) => {
    const { client, table, redirect, process } = await world(t);
    const watching = client.watch({}).on('error', () => {}).resume();
    await once(watching, 'data');
    const ends = Array.from({ length: 20 }, (_, number) =>
      pushed(client, { ...redirect, from: `/${number}` }, { operation: `operation-${number}` }),
    );
    await call(client, 'status', { operation: { id: 'x' } });
    end(process);
    for (const { outcome } of await Promise.all(ends)) {
      assert.ok(outcome.result === DONE || outcome.message === 'shutdown', outcome.message);
    }
    assert.deepEqual(await process.ended, [0, null]);
    await fs.readFile(table).then(JSON.parse, () => {}); // whole, if it is there
  });
}
