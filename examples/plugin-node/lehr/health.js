// grpc.health.v1.Health, of which plugins serve one answer: whether they take calls.

const [SERVING, NOT_SERVING] = [1, 2];
const method = (name, responseStream) => ({
  path: `/grpc.health.v1.Health/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: (bytes) => bytes,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: (status) => Buffer.from([0x08, status]), // field 1, an enum
  responseDeserialize: (bytes) => bytes[1],
});

export const HEALTH = { check: method('Check', false), watch: method('Watch', true) };

export class Health {
  #status = SERVING;
  #watching = new Set();

  handlers() {
    return {
      check: (_call, callback) => callback(null, this.#status),
      watch: (call) => {
        call.on('error', () => {});
        call.on('cancelled', () => this.#watching.delete(call));
        this.#watching.add(call);
        call.write(this.#status);
      },
    };
  }

  drain() {
    this.#status = NOT_SERVING;
    for (const call of this.#watching) {
      call.write(this.#status);
      call.end();
    }
  }
}
