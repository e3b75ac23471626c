// The intent that a call brings along. What is missing raises `Need`: let it pass, and the call is made again.

import { Need, stalled } from './errors.js';

const HIDDEN = '[secret]';

export class Intent {
  #own;
  #provider;
  #assets;
  #outputs;
  #secrets;

  /** @param message lehr.plugin.v1.Intent, as proto-loader decodes it; `own` is the id of the target's asset. */
  constructor(message, own) {
    const { assets = [], outputs = [], secrets = [], provider = '' } = message ?? {};
    this.#own = own;
    this.#provider = provider;
    this.#assets = new Map(assets.map((asset) => [asset.id, asset]));
    this.#outputs = new Map(outputs.map((output) => [key(output.id, output.path), output]));
    this.#secrets = new Map(secrets.map((secret) => [secret.reference, secret.value]));
  }

  /** `{id, type, version, payload, addons}` of an asset, by default the target's; null if it does not exist. */
  asset(id = this.#own) {
    const asset = this.#assets.get(id);
    if (!asset) throw new Need({ assets: [id] });
    if (!asset.exists) return null;
    const addons = Object.entries(asset.addons ?? {}).map(([name, value]) => [name, JSON.parse(value)]);
    const { type, version } = asset;
    return { id, type, version, payload: JSON.parse(asset.payload), addons: Object.fromEntries(addons) };
  }

  /** The payload of an asset that must exist, by default the target's. */
  payload(id = this.#own) {
    const asset = this.asset(id);
    if (!asset) throw stalled(`there is no asset ${id}`, { fix: 'declare it, or remove what names it' });
    return asset.payload;
  }

  /**
   * `{id, config}` of the provider whose configuration applies to this call, such as an account; null for the plugin's
   * own. A plugin that uses it has `providers: true` among its traits. Secrets in `config` are read with `secret`.
   */
  provider() {
    return this.#provider ? { id: this.#provider, config: this.payload(this.#provider).config ?? {} } : null;
  }

  /** An output of another asset, as its plugin has observed it: `output('net/main', 'endpoint/port')`. */
  output(id, path) {
    const output = this.#outputs.get(key(id, path));
    if (!output) throw new Need({ outputs: [{ id, path }] });
    return JSON.parse(output.value);
  }

  /** The bytes of a secret that a payload refers to, as `{secret: 'env:TOKEN'}` or `'env:TOKEN'`. */
  secret(reference) {
    const name = typeof reference === 'string' ? reference : reference.secret;
    const value = this.#secrets.get(name);
    if (!value) throw new Need({ secrets: [name] });
    return value;
  }

  /** `text` in one line, without the secrets of this call. */
  shown(text) {
    let shown = String(text);
    for (const value of this.#secrets.values()) {
      if (value.length) shown = shown.replaceAll(value.toString(), HIDDEN);
    }
    return shown.replace(/\s+/g, ' ').trim();
  }
}

const key = (id, path) => JSON.stringify([id, path]);
