// Signs arrival envelopes as the Go gateway does in mode sync (RFC 8785, SHA-256, Ed25519, one signature a receipt), with
// the library that the argument names, and times itself:
//
//   noble-sync    @noble/ed25519 sign: SHA-512 in JavaScript, a caller never yields
//   noble-async   @noble/ed25519 signAsync: SHA-512 by WebCrypto, callers take turns at every await, so a call's time holds
//                 the others' work: latency grows with the number of callers
//   node-native   node:crypto, which is OpenSSL
//
// The timer of a call starts when its caller begins it and stops when the receipt is a string. Every receipt is verified
// after the clock has stopped, and one with a changed byte must fail.
import crypto from 'node:crypto';
import readline from 'node:readline';
import canonicalize from 'canonicalize';
import * as ed from '@noble/ed25519';
import { sha256 } from '@noble/hashes/sha2';
import { sha512 } from '@noble/hashes/sha2';

const variant = process.argv[2];
const seed = crypto.createHash('sha256').update('toll benchmark receipt').digest();
const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
const privateKey = crypto.createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
const publicKey = crypto.createPublicKey(privateKey);
const x = publicKey.export({ format: 'jwk' }).x;
const kid = crypto.createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
if (variant === 'noble-sync') ed.etc.sha512Sync = (...m) => sha512(ed.etc.concatBytes(...m));

const now = () => Number(process.hrtime.bigint());
const leafPrefix = Buffer.from([0]);

const hashers = {
  noble: (bytes) => Buffer.from(sha256(Buffer.concat([leafPrefix, bytes]))),
  native: (bytes) => crypto.createHash('sha256').update(leafPrefix).update(bytes).digest(),
};
const hash = variant === 'node-native' ? hashers.native : hashers.noble;
const signers = {
  'noble-sync': (bytes) => ed.sign(bytes, seed),
  'noble-async': (bytes) => ed.signAsync(bytes, seed),
  'node-native': (bytes) => crypto.sign(null, bytes, privateKey),
};
const sign = signers[variant];
if (!sign) throw new Error(`library ${variant} is not one of ${Object.keys(signers)}`);

let next = 0;

function arrival() {
  const n = next++;
  return {
    namespace: 'prod', policy: { id: 'policy-7', version: 3 }, tenant: 'acme',
    request_id: `req-${100000000 + n}`, request_hash: crypto.createHash('sha256').update(String(n)).digest('hex'),
  };
}

let seq = 0;

// envelope freezes an arrival: its canonical form as bytes, and the hash of that.
function envelope(a) {
  const text = canonicalize({
    alg: 'Ed25519', arrived_at: new Date().toISOString(), epoch: 1, gateway: 'gateway.example', kid,
    namespace: a.namespace, policy: a.policy, request_hash: a.request_hash, request_id: a.request_id, seq: seq++,
    tenant: a.tenant, type: 'arrival', v: 1,
  });
  const bytes = Buffer.from(text);
  return { text, bytes, leaf: hash(bytes) };
}

// receipt makes a receipt, or a promise of one: the synchronous libraries never yield.
function receipt(a, parts) {
  const begin = now();
  const e = envelope(a);
  const frozen = now();
  const finish = (sig) => {
    parts.envelope.push(frozen - begin);
    parts.sign.push(now() - frozen);
    return `{"envelope":${e.text},"form":"single","leaf":"${e.leaf.toString('base64')}","sig":"${Buffer.from(sig).toString('base64url')}"}`;
  };
  const sig = sign(e.bytes);
  return sig instanceof Promise ? sig.then(finish) : finish(sig);
}

// verified counts the receipts that verify, and throws when a control does.
function verified(receipts, arrivals) {
  let n = 0;
  receipts.forEach((r, i) => {
    const { envelope: e, leaf, sig } = JSON.parse(r);
    const bytes = Buffer.from(canonicalize(e));
    const good = e.request_hash === arrivals[i].request_hash && hashers.native(bytes).toString('base64') === leaf &&
      crypto.verify(null, bytes, publicKey, Buffer.from(sig, 'base64url'));
    if (!good) throw new Error(`receipt ${i} does not verify: ${r}`);
    if (n++ % 97 === 0) {
      bytes[i % bytes.length] ^= 1;
      if (crypto.verify(null, bytes, publicKey, Buffer.from(sig, 'base64url'))) throw new Error(`control: receipt ${i} with a changed byte passed`);
    }
  });
  return n;
}

async function stretch({ id, case: name, calls, callers }) {
  if (name !== 'receipt/volatile') return { id, error: `case ${name} is none of this engine; it has receipt/volatile` };
  if (!(Number.isInteger(calls) && calls >= 1 && calls <= 65536 && Number.isInteger(callers) && callers >= 1 && callers <= 1024)) {
    return { id, error: `calls ${calls} by ${callers} callers; want 1 to 65536 by 1 to 1024` };
  }
  const arrivals = Array.from({ length: calls }, arrival);
  const receipts = new Array(calls);
  const ns = [];
  const parts = { envelope: [], sign: [] };
  const worker = async (at) => {
    for (let i = at; i < calls; i += callers) {
      const begin = now();
      const r = receipt(arrivals[i], parts);
      receipts[i] = r instanceof Promise ? await r : r;
      ns.push(now() - begin);
    }
  };
  const cpu = process.cpuUsage();
  const begin = now();
  await Promise.all(Array.from({ length: Math.min(callers, calls) }, (_, at) => worker(at)));
  const elapsed = now() - begin;
  const used = process.cpuUsage(cpu);
  return {
    id, ns, elapsed_ns: elapsed, cpu_ns: (used.user + used.system) * 1000, user_ns: used.user * 1000, parts, checked: verified(receipts, arrivals),
  };
}

async function answer(line) {
  if (line === 'stats') return { heap: process.memoryUsage().heapUsed };
  let question;
  try {
    question = JSON.parse(line);
    return await stretch(question);
  } catch (e) {
    return { id: question?.id, error: e.message };
  }
}

console.log(JSON.stringify({ ready: 'stdio:', version: process.version, name: variant, language: 'javascript' }));
let busy = Promise.resolve(); // questions are answered in turn
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => { busy = busy.then(() => answer(line)).then((a) => console.log(JSON.stringify(a))); });
lines.on('close', () => { busy.then(() => process.exit(0)); });
