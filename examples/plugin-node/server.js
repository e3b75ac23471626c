// The program that reads the table: a web server of redirects. `node server.js TABLE PORT`.

import fs from 'node:fs/promises';
import http from 'node:http';

import { matches } from './password.js';

const [table, port] = process.argv.slice(2);

/** The password that a request brings along. */
function given(request) {
  const [, basic = ''] = /^Basic (.*)$/.exec(request.headers.authorization ?? '') ?? [];
  return Buffer.from(basic, 'base64').toString().replace(/^[^:]*:/, '');
}

async function answer(request) {
  const entries = new Map(Object.entries(JSON.parse(await fs.readFile(table, 'utf8'))));
  const entry = entries.get(request.url.split('?')[0]);
  if (!entry) return [404];
  if (entry.password !== undefined && !(await matches(given(request), entry.password))) {
    return [401, { 'www-authenticate': 'Basic realm="redirects"' }];
  }
  return [entry.status, { location: entry.to }];
}

const server = http.createServer(async (request, response) => {
  const [status, headers = {}] = await answer(request).catch(() => [503]);
  response.writeHead(status, headers).end();
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => server.close(() => process.exit(0)));
