// A plugin with faults, for tests of lehr/.

import { serve } from '../lehr/index.js';

const fault = (intent) => {
  throw new Error(`cannot log in with\n${intent.secret('env:TOKEN')}`);
};

await serve({
  name: 'faulty',
  version: '1',
  types: [{ name: 'example.Redirect' }],
  diff: async (_target, intent) => {
    const { from, other } = intent.payload();
    if (from === '/other') return { outputs: { to: intent.payload(other).to }, handle: 'h', lookAgain: 0.5 };
    if (from === '/account') {
      const { id, config } = intent.provider();
      return { notes: [`${id}: ${config.region}`, `${intent.secret(config.token).length} bytes`] };
    }
    if (from === '/output') return { notes: [intent.output('other', 'a/b')] };
    return fault(intent);
  },
  push: async (_target, intent, push) => {
    if (intent.payload().from === '/stops') {
      await new Promise((resolve) => push.signal.addEventListener('abort', resolve));
      push.checkpoint();
    }
    push.progress(`logging in with ${intent.secret('env:TOKEN')}`);
    return fault(intent);
  },
  discover: async function* (query, _partition, intent) {
    const account = intent.provider();
    const found = account ? `${account.config.region}/${intent.secret(account.config.token).length}` : 'own';
    yield { id: `${query[0]}/${found}`, type: 'example.Redirect', payload: {} };
  },
  watch: async function* () {
    yield null;
    throw new Error('the provider has gone away');
  },
  check: async () => {
    console.log('checked');
  },
});
