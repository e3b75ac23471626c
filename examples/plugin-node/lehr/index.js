// Serves a plugin of Lehr over lehr.plugin.v1 (plugin.proto). Copy this folder; nothing in it is about redirects.
//
// A plugin is an object:
//
//   name, version   texts
//   types           [{name, version, description, schema, references, secrets, stableOutputs, changingOutputs}]
//   traits          {fencing: 'none' | 'native' | 'compare-and-swap', goals: ['absent'], turns, pushes, diffTimeout,
//                    pushTimeout, resync, restarts}
//   diff(target, intent)           {changes: [{path, intended, observed}], effects, lookAgain, notes, handle, outputs};
//                                  no changes if nothing needs doing. It only looks
//   push(target, intent, push)     nothing once production is as intended, or {result: 'failed', message, retryAt};
//                                  see Push in pushes.js
//   check()         optional: throws the trouble that keeps the plugin from being used at all, such as a wrong setting
//   batch()         optional: a `diff` for many comparisons at once, which may remember what it has read
//   mayRun(operation)              optional: whether a push of an earlier process may still change production. Lehr
//                                  kills a plugin's process before it starts another one
//   watch(signal)   optional: an async generator of {partition, id}, or null for "anything may have changed"
//   discover(query, partition)     optional: an async generator of {id, type, payload, notes, obstacle}
//   close()         optional: called before the process ends
//
// `intent` has the payloads, outputs and secrets (intent.js). All functions may throw `stalled` and the other troubles
// of errors.js. Anything else that they throw is a fault of the plugin: after a push, the outcome is unknown.

import { fileURLToPath } from 'node:url';
import path from 'node:path';

import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

import { HEALTH, Health } from './health.js';
import { Service } from './service.js';

export * from './errors.js';

const COOKIE = '6c656872';
const PROTOCOL = '1';
const PROTO = path.join(path.dirname(fileURLToPath(import.meta.url)), 'plugin.proto');
const FORM = { longs: Number, enums: String, defaults: true, oneofs: true };

/** Serve `plugin` to the Lehr that has started this process, until it is gone or asks the process to end. */
export async function serve(plugin) {
  const { LEHR_PLUGIN_COOKIE, PLUGIN_PROTOCOL_VERSIONS = PROTOCOL, PLUGIN_UNIX_SOCKET_DIR } = process.env;
  if (LEHR_PLUGIN_COOKIE !== COOKIE || !PLUGIN_UNIX_SOCKET_DIR) {
    leave(`${plugin.name} is a plugin of Lehr, which starts it: see \`lehr help write-a-plugin-in-another-language\`.`);
  }
  if (!PLUGIN_PROTOCOL_VERSIONS.split(',').includes(PROTOCOL)) {
    leave(`${plugin.name} speaks version ${PROTOCOL} of the protocol, and Lehr ${PLUGIN_PROTOCOL_VERSIONS}.`);
  }
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // once Lehr is gone
  const socket = path.join(PLUGIN_UNIX_SOCKET_DIR, 'plugin.sock');
  const drain = await listen(plugin, `unix:${socket}`, grpc.ServerCredentials.createInsecure());
  process.on('SIGTERM', drain);
  process.stdin.on('close', drain).on('error', drain).resume(); // closed: Lehr is gone
  process.stdout.write(`1|${PROTOCOL}|unix|${socket}|grpc\n`);
}

/**
 * Serve `plugin` at an address, for a plugin with a life cycle of its own: over mutual TLS
 * (`grpc.ServerCredentials.createSsl(root, [{private_key, cert_chain}], true)`).
 *
 * @returns a function that ends what is under way, and then the process.
 */
export async function listen(plugin, address, credentials) {
  const { lehr } = grpc.loadPackageDefinition(await protoLoader.load(PROTO, FORM));
  const [server, service, health] = [new grpc.Server(), new Service(plugin), new Health()];
  server.addService(lehr.plugin.v1.Plugin.service, service.handlers());
  server.addService(HEALTH, health.handlers());
  await new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error) => (error ? reject(error) : resolve()));
  });
  let draining = null;
  return () => {
    draining ??= (async () => {
      health.drain();
      const silent = new Promise((resolve) => server.tryShutdown(resolve)); // accepts no more calls
      await service.drain();
      await silent;
      process.exit(0);
    })();
    return draining;
  };
}

function leave(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}
