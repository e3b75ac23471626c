// Passwords in the table are salted hashes, so that a reader of the table does not know them.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify(scrypt);
const BYTES = 32;

/** A new hash of a password: `scrypt:SALT:HASH`, different each time. */
export async function hashed(password, salt = randomBytes(16)) {
  const hash = await derive(password, salt, BYTES);
  return ['scrypt', salt.toString('hex'), hash.toString('hex')].join(':');
}

/** Whether `hash` is one of this password; false for anything that is not a hash. */
export async function matches(password, hash) {
  const [form, salt, expected] = String(hash).split(':');
  if (form !== 'scrypt' || !salt || expected?.length !== 2 * BYTES) return false;
  const found = await derive(password, Buffer.from(salt, 'hex'), BYTES);
  return timingSafeEqual(found, Buffer.from(expected.padEnd(2 * BYTES), 'hex'));
}
