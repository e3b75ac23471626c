// The service lehr.plugin.v1.Plugin over a plugin's own functions; index.js describes them.

import { difference, fault, outcome, pushRefusal, refusal } from './answers.js';
import { Need, Stopped, Trouble, stalled } from './errors.js';
import { Intent } from './intent.js';
import { Push, Pushes } from './pushes.js';

const ALIVE_SECONDS = 10; // Lehr reopens a watch that is silent for more than 30
const MOST_PLACES = 5;
const INTERNAL = 13; // gRPC: there is no answer

export class Service {
  #plugin;
  #goals;
  #pushes = new Pushes();
  #watching = new Set();

  constructor(plugin) {
    this.#plugin = plugin;
    this.#goals = new Set(['GOAL_PRESENT', ...(plugin.traits?.goals ?? []).map(goalName)]);
  }

  /** What grpc-js serves: Select is left out, so it is answered with UNIMPLEMENTED. */
  handlers() {
    return {
      describe: this.#unary(async () => ({ ...this.#describe(), ...(await this.#obstacle()) })),
      diff: this.#unary((request) => this.#diff(request)),
      diffMany: this.#stream((request, call) => this.#diffMany(request, call)),
      push: this.#stream((request, call) => this.#push(request, call)),
      cancel: this.#unary(({ operation, reason }) => {
        this.#pushes.cancel(operation.id, String(reason).replace('REASON_', '').toLowerCase());
        return {};
      }),
      status: this.#unary((request) => this.#status(request)),
      watch: this.#stream((_request, call) => this.#watch(call)),
      discover: this.#stream((request, call) => this.#discover(request, call)),
    };
  }

  /** End what is under way, pushes at the next point where that is safe. */
  async drain() {
    await this.#pushes.drain('shutdown');
    for (const stop of this.#watching) stop.abort();
    await this.#plugin.close?.();
  }

  #describe() {
    const { name, version, types, traits = {}, watch, discover } = this.#plugin;
    return {
      name,
      version,
      types: types.map(({ schema, references, ...type }) => ({
        ...type,
        schema: schema && Buffer.from(JSON.stringify(schema)),
        references: references && Buffer.from(JSON.stringify(references)),
      })),
      traits: {
        ...traits,
        fencing: `FENCING_${(traits.fencing ?? 'none').replaceAll('-', '_').toUpperCase()}`,
        goals: (traits.goals ?? []).map(goalName),
        batches: true,
        watches: Boolean(watch),
        discovers: Boolean(discover),
      },
    };
  }

  async #obstacle() {
    try {
      await this.#plugin.check?.();
      return {};
    } catch (error) {
      const refused = refusal(error, new Intent());
      if (!refused) throw error;
      return refused;
    }
  }

  async #diff({ target, intent, mark }, compare = this.#plugin.diff) {
    const read = new Intent(intent, target.id);
    try {
      this.#check(target);
      return { mark, difference: difference(await compare(target, read)) };
    } catch (error) {
      const refused = refusal(error, read);
      if (!refused) throw withoutSecrets(error, read);
      return { mark, ...refused };
    }
  }

  async #diffMany({ requests }, call) {
    const compare = this.#plugin.batch?.() ?? this.#plugin.diff;
    for (const [index, request] of requests.entries()) {
      if (call.cancelled) return;
      try {
        call.write({ index, response: await this.#diff(request, compare) });
      } catch (error) {
        log(error); // left without an answer, so that it is asked alone
      }
    }
  }

  async #push({ target, intent, operation }, call) {
    const read = new Intent(intent, target.id);
    const push = new Push(operation, (text) => call.write({ progress: { message: read.shown(text) } }));
    try {
      const done = await this.#pushes.run(push, async () => {
        this.#check(target);
        return this.#plugin.push(target, read, push);
      });
      const { message = '', ...rest } = done ?? {};
      call.write({ outcome: outcome({ ...rest, message: read.shown(message) }) });
    } catch (error) {
      if (isFault(error)) log(withoutSecrets(error, read));
      call.write(pushRefusal(error, read));
    }
  }

  async #status({ operation }) {
    const mayRun = this.#pushes.mayRun(operation.id) || ((await this.#plugin.mayRun?.(operation)) ?? false);
    return { state: mayRun ? 'STATE_RUNNING' : 'STATE_ENDED' };
  }

  async #watch(call) {
    const stop = new AbortController();
    const alive = () => call.write({ alive: {} });
    const beating = setInterval(alive, ALIVE_SECONDS * 1000);
    this.#watching.add(stop);
    call.on('cancelled', () => stop.abort());
    try {
      alive();
      for await (const key of this.#plugin.watch(stop.signal)) {
        call.write(key ? { changed: key } : { lookAtAll: {} });
      }
    } finally {
      clearInterval(beating);
      this.#watching.delete(stop);
    }
  }

  async #discover({ query, partition, intent }, call) {
    const read = new Intent(intent, intent?.provider);
    try {
      for await (const { payload, ...found } of this.#plugin.discover(query, partition, read)) {
        call.write({ found: { notes: [], obstacle: '', ...found, payload: Buffer.from(JSON.stringify(payload)) } });
      }
    } catch (error) {
      const refused = refusal(error, read);
      if (!refused) throw error;
      call.write(refused);
    }
  }

  /** Refuse what this plugin does not know, such as what a later Lehr asks for. */
  #check({ type, goal }) {
    if (!this.#plugin.types.some(({ name }) => name === type)) throw stalled(`this plugin does not know ${type}`);
    if (!this.#goals.has(goal)) {
      throw stalled(`assets of type ${type} cannot be ${String(goal).replace('GOAL_', '').toLowerCase()}`, {
        why: 'their plugin does not know this goal',
        fix: 'change the turndown, or use another version of the plugin',
      });
    }
  }

  #unary(answer) {
    return async (call, callback) => {
      try {
        callback(null, await answer(call.request));
      } catch (error) {
        callback(noAnswer(error));
      }
    };
  }

  #stream(answer) {
    return async (call) => {
      call.on('error', () => {}); // Lehr has broken the call off, which cancels nothing
      try {
        await answer(call.request, call);
        call.end();
      } catch (error) {
        call.emit('error', noAnswer(error));
      }
    };
  }
}

const goalName = (goal) => `GOAL_${goal.toUpperCase()}`;

/** `error` in one line; of its stack only the places, since the message, which may hold secrets, is part of it. */
function withoutSecrets(error, intent) {
  const places = String(error?.stack).split('\n').filter((line) => /^ +at /.test(line));
  return Object.assign(new Error(fault(error, intent)), { where: places.slice(0, MOST_PLACES).join('\n') });
}

/** A status other than OK: a fault of the plugin, which is also logged. */
function noAnswer(error) {
  log(error);
  return { code: INTERNAL, details: error.message };
}

const isFault = (error) => ![Need, Stopped, Trouble].some((kind) => error instanceof kind);
const log = (error) => console.error([error.message, error.where ?? ''].join('\n').trim());
