// ts-mls as an engine of the benchmark group. Its states are immutable values, so a call can start from a state that was
// made before the window. It adds members without an update path, and pads messages to 256 bytes, as it does by default.
import {
  createApplicationMessage, createCommit, createGroup, decodeMlsMessage, defaultCapabilities, emptyPskIndex, encodeMlsMessage,
  generateKeyPackage, getCiphersuiteFromName, getCiphersuiteImpl, joinGroup, processMessage, acceptAll,
} from 'ts-mls';
import { parse, same, serve, text } from './stretch.js';

const suite = await getCiphersuiteImpl(getCiphersuiteFromName('MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519'));
const now = BigInt(Math.floor(Date.now() / 1000));
const lifetime = { notBefore: now - 3600n, notAfter: now + 90n * 86400n };
const wire = (content) => encodeMlsMessage({ version: 'mls10', ...content });
const read = (bytes) => decodeMlsMessage(bytes, 0)[0];

async function client(name) {
  const credential = { credentialType: 'basic', identity: new TextEncoder().encode(name) };
  const keys = await generateKeyPackage(credential, defaultCapabilities(), lifetime, [], suite);
  return { ...keys, bytes: wire({ wireformat: 'mls_key_package', keyPackage: keys.publicPackage }) };
}

const clients = (n) => Promise.all(Array.from({ length: n }, (_, i) => client(`member-${String(i).padStart(4, '0')}`)));

async function found(founder, invited) {
  const state = await createGroup(crypto.getRandomValues(new Uint8Array(32)), founder.publicPackage, founder.privatePackage, [], suite);
  const extraProposals = invited.map((bytes) => ({ proposalType: 'add', add: { keyPackage: read(bytes).keyPackage } }));
  const made = await createCommit({ state, cipherSuite: suite }, { extraProposals, ratchetTreeExtension: true });
  return { state: made.newState, welcome: wire({ wireformat: 'mls_welcome', welcome: made.welcome }) };
}

const join = (who, welcome) => joinGroup(read(welcome).welcome, who.publicPackage, who.privatePackage, emptyPskIndex, suite);
const seal = async (state) => {
  const made = await createApplicationMessage(state, text, suite);
  return { state: made.newState, message: wire({ wireformat: 'mls_private_message', privateMessage: made.privateMessage }) };
};
const open = (state, message) => processMessage(read(message), state, emptyPskIndex, acceptAll, suite);
const authenticator = (state) => state.keySchedule.epochAuthenticator;

async function group(members) {
  const founder = await client('founder');
  const others = await clients(members);
  const made = await found(founder, others.map((c) => c.bytes));
  const last = others[members - 1];
  return { sender: made.state, receiver: await join(last, made.welcome), last, welcome: made.welcome };
}

// count returns how many of n results are right.
const count = async (n, right) => {
  let ok = 0;
  for (let i = 0; i < n; i++) if (await right(i)) ok++;
  return ok;
};

const cases = {
  async create_group({ members }) {
    const founder = await client('founder');
    const others = await clients(members);
    const packages = others.map((c) => c.bytes);
    const got = [];
    return {
      call: async () => { got.push(await found(founder, packages)); },
      check: (n) => count(n, async (i) => same(authenticator(await join(others[i % members], got[i].welcome)), authenticator(got[i].state))),
    };
  },
  async join_welcome({ members }) {
    const g = await group(members);
    const got = [];
    return { call: async () => { got.push(await join(g.last, g.welcome)); }, check: (n) => count(n, (i) => same(authenticator(got[i]), authenticator(g.sender))) };
  },
  async send_app_message({ members, first }) {
    const g = await group(members);
    let state = first ? g.sender : (await seal(g.sender)).state;
    const got = [];
    return {
      call: async () => {
        const made = await seal(state);
        got.push(made.message);
        if (!first) state = made.state;
      },
      async check(n) {
        let receiver = g.receiver;
        return count(n, async (i) => {
          const read = await open(receiver, got[i]);
          if (!first) receiver = read.newState;
          return same(read.message, text);
        });
      },
    };
  },
  async ingest_app_message({ members }, calls) {
    const g = await group(members);
    let opening = await seal(g.sender);
    let receiver = (await open(g.receiver, opening.message)).newState;
    const messages = [];
    for (let i = 0; i < calls; i++) {
      opening = await seal(opening.state);
      messages.push(opening.message);
    }
    const got = [];
    return {
      call: async (i) => {
        const read = await open(receiver, messages[i]);
        receiver = read.newState;
        got.push(read.message);
      },
      check: (n) => count(n, (i) => same(got[i], text)),
    };
  },
  async ingest_commit({ members }, calls) {
    const g = await group(members);
    let { sender, receiver } = g;
    const commits = [];
    const want = [];
    for (let i = 0; i < calls; i++) {
      const made = await createCommit({ state: sender, cipherSuite: suite }); // without proposals: an update path
      sender = made.newState;
      commits.push(encodeMlsMessage(made.commit));
      want.push(authenticator(sender));
    }
    const got = [];
    return {
      call: async (i) => {
        receiver = (await open(receiver, commits[i])).newState;
        got.push(authenticator(receiver));
      },
      check: (n) => count(n, (i) => same(got[i], want[i])),
    };
  },
};

serve({ name: 'ts-mls', version: '1.6.4', sdk: 'ts-mls, WebCrypto' }, async (name, calls) => {
  const parsed = parse(name);
  if (!cases[parsed.op]) throw new Error(`case ${name} is none of this engine`);
  return cases[parsed.op](parsed, calls);
});
