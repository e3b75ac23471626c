// The side of Lehr, as far as these tests need it: starts the plugin and calls it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

import { HEALTH } from '../lehr/health.js';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const PROTO = path.join(HERE, 'lehr/plugin.proto');
const { lehr } = grpc.loadPackageDefinition(
  await protoLoader.load(PROTO, { longs: Number, enums: String, defaults: true, oneofs: true }),
);

export const COOKIE = { LEHR_PLUGIN_COOKIE: '6c656872', PLUGIN_PROTOCOL_VERSIONS: '1' };

/** A new folder, removed after the test. */
export async function folder(test) {
  const made = await fs.mkdtemp(path.join(os.tmpdir(), 'redirects-'));
  test.after(() => fs.rm(made, { recursive: true, force: true }));
  return made;
}

/** The plugin's program, without a handshake; killed after the test. */
export function program(test, environment, file = 'plugin.js') {
  const process = spawn('node', [path.join(HERE, file)], {
    env: { PATH: globalThis.process.env.PATH, ...environment },
  });
  test.after(() => process.kill('SIGKILL'));
  process.ended = once(process, 'close');
  return process;
}

/** A plugin that has answered the handshake: its process, its line, and its calls. */
export async function started(test, file) {
  const sockets = await folder(test);
  const process = program(test, { ...COOKIE, PLUGIN_UNIX_SOCKET_DIR: sockets }, file);
  const log = [];
  process.stderr.on('data', (text) => log.push(String(text)));
  const line = String(await once(process.stdout, 'data')).trim();
  const address = `unix:${line.split('|')[3]}`;
  const client = new lehr.plugin.v1.Plugin(address, grpc.credentials.createInsecure());
  const health = new (grpc.makeGenericClientConstructor(HEALTH))(address, grpc.credentials.createInsecure());
  test.after(() => [client, health].forEach((each) => each.close()));
  return { process, line, client, health, sockets, log };
}

/** The answer of a call with one answer. */
export const call = (client, method, request) =>
  new Promise((resolve, reject) => {
    client[method](request, (error, answer) => (error ? reject(error) : resolve(answer)));
  });

/** All messages of a call with many. */
export async function messages(stream) {
  const all = [];
  for await (const message of stream) all.push(message);
  return all;
}

/** A request to compare or push a redirect. */
export function request(payload, { goal = 'GOAL_PRESENT', operation = 'operation-1', secrets = [], id = 'docs' } = {}) {
  const json = Buffer.from(JSON.stringify(payload));
  const asset = { id, exists: true, type: 'example.Redirect', version: 1, payload: json };
  return {
    target: { partition: 'test', id, type: 'example.Redirect', incarnation: 1, goal },
    intent: { assets: [asset], secrets },
    operation: { id: operation, epoch: 1 },
    mark: Buffer.from('abc'),
  };
}

/** The last message of a push. */
export const pushed = async (client, ...how) => (await messages(client.push(request(...how)))).at(-1);

/** What differs, by path. */
export async function compared(client, ...how) {
  const { difference } = await call(client, 'diff', request(...how));
  return difference.changes.map(({ path: at, intended, observed }) => [at, `${intended}`, `${observed}`]);
}
