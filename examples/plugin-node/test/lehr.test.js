import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { call, messages, request, started } from './host.js';

const TOKEN = [{ reference: 'env:TOKEN', value: Buffer.from('hunter22') }];

test('a fault in a diff is no answer, and shows no secret, also not in the log', async (t) => {
  const { client, log } = await started(t, 'test/faulty.js');
  await assert.rejects(call(client, 'diff', request({ from: '/a' }, { secrets: TOKEN })), (error) => {
    assert.equal(error.code, 13);
    assert.equal(error.details, 'Error: cannot log in with [secret]');
    return true;
  });
  assert.match(log.join(''), /cannot log in with \[secret\]\n +at fault/);
  assert.doesNotMatch(log.join(''), /hunter22/);
});

test('of many diffs, one with a fault is left out', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const good = request({ from: '/other', other: 'docs', to: '/b' });
  const requests = [request({ from: '/a' }, { secrets: TOKEN }), good];
  const answers = await messages(client.diffMany({ requests }));
  assert.deepEqual(answers.map(({ index }) => index), [1]);
});

test('after a fault in a push, the outcome is unknown, and its messages show no secret', async (t) => {
  const { client, log } = await started(t, 'test/faulty.js');
  const all = await messages(client.push(request({ from: '/a' }, { secrets: TOKEN })));
  assert.match(log.join(''), /cannot log in with \[secret\]\n +at fault/);
  assert.doesNotMatch(log.join(''), /hunter22/);
  assert.equal(all[0].progress.message, 'logging in with [secret]');
  assert.equal(all.at(-1).outcome.result, 'RESULT_UNKNOWN');
  assert.equal(all.at(-1).outcome.message, 'Error: cannot log in with [secret]');
  assert.equal((await call(client, 'status', { operation: { id: 'operation-1' } })).state, 'STATE_ENDED');
});

test('what a call needs is asked for, one after the other', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const asking = request({ from: '/other', other: 'other' });
  assert.deepEqual((await call(client, 'diff', asking)).need.assets, ['other']);
  asking.intent.assets.push({ id: 'other', exists: false });
  const { trouble } = await call(client, 'diff', asking);
  assert.deepEqual([trouble.kind, trouble.what], ['KIND_STALLED', 'there is no asset other']);
  const output = request({ from: '/output' });
  const [key] = (await call(client, 'diff', output)).need.outputs;
  assert.deepEqual(key, { id: 'other', path: 'a/b' });
  output.intent.outputs = [{ ...key, value: Buffer.from('"here"') }];
  assert.deepEqual((await call(client, 'diff', output)).difference.notes, ['here']);
});

test('a provider and its secrets are there in comparisons and discovery', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const config = { region: 'eu', token: { secret: 'env:TOKEN' } };
  const payload = Buffer.from(JSON.stringify({ plugin: 'faulty', config }));
  const account = { id: 'accounts/eu', exists: true, type: 'lehr.Provider', version: 1, payload };
  const comparing = request({ from: '/account' });
  Object.assign(comparing.intent, { provider: account.id, assets: [...comparing.intent.assets, account] });
  assert.deepEqual((await call(client, 'diff', comparing)).need.secrets, ['env:TOKEN']);
  comparing.intent.secrets = TOKEN;
  assert.deepEqual((await call(client, 'diff', comparing)).difference.notes, ['accounts/eu: eu', '8 bytes']);
  const intent = { provider: account.id, assets: [account] };
  const [needed] = await messages(client.discover({ query: ['a'], partition: 'test', intent }));
  assert.deepEqual(needed.need.secrets, ['env:TOKEN']);
  const [found] = await messages(client.discover({ query: ['a'], partition: 'test', intent: { ...intent, secrets: TOKEN } }));
  assert.equal(found.found.id, 'a/eu/8');
  const [own] = await messages(client.discover({ query: ['a'], partition: 'test' }));
  assert.equal(own.found.id, 'a/own');
});

test('handles, outputs and looks are sent; what is not given keeps the last', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const { mark, difference } = await call(client, 'diff', request({ from: '/other', other: 'docs', to: '/b' }));
  assert.equal(String(mark), 'abc');
  assert.deepEqual([difference.handle, difference.lookAgain], ['h', 0.5]);
  assert.equal(String(difference.outputs.values.to), '"/b"');
  const output = request({ from: '/output' });
  output.intent.outputs = [{ id: 'other', path: 'a/b', value: Buffer.from('1') }];
  const without = (await call(client, 'diff', output)).difference;
  assert.deepEqual([without.outputs, without._handle, without._lookAgain], [null, undefined, undefined]);
});

test('types and goals that it does not know stall', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  for (const strange of [{ goal: 'GOAL_ABSENT' }, { goal: 99 }, { type: 'example.Other' }]) {
    const asking = request({ from: '/a' });
    Object.assign(asking.target, strange);
    assert.equal((await call(client, 'diff', asking)).trouble.kind, 'KIND_STALLED');
    assert.equal((await messages(client.push(asking))).at(-1).trouble.kind, 'KIND_STALLED');
  }
});

test('one operation does not run twice at once', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const first = messages(client.push(request({ from: '/stops' })));
  await call(client, 'describe', {});
  const [second] = await messages(client.push(request({ from: '/stops' })));
  assert.equal(second.trouble.kind, 'KIND_TRANSIENT');
  await call(client, 'cancel', { operation: { id: 'operation-1' }, reason: 'REASON_TIMEOUT' });
  assert.deepEqual((await first).at(-1).outcome.message, 'timeout');
});

test('a push goes on when its stream is broken off', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const stream = client.push(request({ from: '/stops' })).on('error', () => {});
  await call(client, 'describe', {});
  stream.cancel();
  const operation = { id: 'operation-1' };
  assert.equal((await call(client, 'status', { operation })).state, 'STATE_RUNNING');
  await call(client, 'cancel', { operation, reason: 'REASON_TIMEOUT' });
  assert.equal((await call(client, 'status', { operation })).state, 'STATE_ENDED');
  await call(client, 'describe', {}); // it serves
});

test('a watch that fails ends, after its hints', async (t) => {
  const { client } = await started(t, 'test/faulty.js');
  const stream = client.watch({});
  const events = [];
  stream.on('data', ({ event }) => events.push(event));
  const [error] = await once(stream, 'error');
  assert.equal(error.code, 13);
  assert.deepEqual(events, ['alive', 'lookAtAll']);
});
