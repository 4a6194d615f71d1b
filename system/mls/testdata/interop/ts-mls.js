// ts-mls clients, one question per line: {"op":…,"who":…} answered by {…} or {"error":…}. Bytes are hex.
import readline from 'node:readline';
import {
  acceptAll, createApplicationMessage, createCommit, createGroup, createProposal,
  decodeMlsMessage, defaultCapabilities, emptyPskIndex, encodeMlsMessage, generateKeyPackage, getCiphersuiteFromName,
  getCiphersuiteImpl, ciphersuites, joinGroup, joinGroupExternal, makePskIndex, mlsExporter,
  processMessage, processPrivateMessage,
} from 'ts-mls';
import { createGroupInfoWithRatchetTree } from 'ts-mls/createCommit.js';

const hex = (bytes) => Buffer.from(bytes).toString('hex');
const bytes = (text) => new Uint8Array(Buffer.from(text, 'hex'));
const read = (text) => decodeMlsMessage(bytes(text), 0)[0];
const wire = (message) => hex(encodeMlsMessage({ version: 'mls10', ...message }));
const clients = new Map();
const suites = new Map();

async function suite(id) {
  if (!suites.has(id)) {
    const name = Object.keys(ciphersuites).find((n) => ciphersuites[n] === id);
    suites.set(id, await getCiphersuiteImpl(getCiphersuiteFromName(name)));
  }
  return suites.get(id);
}

const psks = (c) => (c.state && Object.keys(c.psks).length ? makePskIndex(c.state, Object.fromEntries(Object.entries(c.psks).map(([k, v]) => [Buffer.from(k, 'hex').toString('base64'), bytes(v)]))) : emptyPskIndex);
const index = (c) => ({ findPsk: (id) => (id.psktype === 'external' && c.psks[hex(id.pskId)] ? bytes(c.psks[hex(id.pskId)]) : psks(c).findPsk(id)) });

function proposal(c, p) {
  switch (p.type) {
    case 'add': return { proposalType: 'add', add: { keyPackage: read(p.keyPackage).keyPackage } };
    case 'remove': return { proposalType: 'remove', remove: { removed: p.leaf } };
    case 'psk': return { proposalType: 'psk', psk: { preSharedKeyId: { psktype: 'external', pskId: bytes(p.id), pskNonce: c.cs.rng.randomBytes(c.cs.kdf.size) } } };
    default: throw new Error(`no proposal ${p.type}`);
  }
}

const operations = {
  async client({ who, suite: id, psks = {} }) {
    const cs = await suite(id);
    const now = BigInt(Math.floor(Date.now() / 1000));
    const credential = { credentialType: 'basic', identity: new TextEncoder().encode(who) };
    const keys = await generateKeyPackage(credential, defaultCapabilities(), { notBefore: now - 3600n, notAfter: now + 86400n }, [], cs);
    clients.set(who, { cs, keys, psks });
    return { keyPackage: wire({ wireformat: 'mls_key_package', keyPackage: keys.publicPackage }) };
  },
  async create(c, { groupId }) {
    c.state = await createGroup(bytes(groupId), c.keys.publicPackage, c.keys.privatePackage, [], c.cs);
    return {};
  },
  async join(c, { welcome }) {
    c.state = await joinGroup(read(welcome).welcome, c.keys.publicPackage, c.keys.privatePackage, index(c), c.cs);
    return {};
  },
  async commit(c, { proposals, publicly = false }) {
    const made = await createCommit({ state: c.state, cipherSuite: c.cs, pskIndex: index(c) }, {
      extraProposals: (proposals ?? []).map((p) => proposal(c, p)), ratchetTreeExtension: true, wireAsPublicMessage: publicly,
    });
    c.state = made.newState;
    return { commit: hex(encodeMlsMessage(made.commit)), welcome: made.welcome && wire({ wireformat: 'mls_welcome', welcome: made.welcome }) };
  },
  async propose(c, { what, publicly = false }) {
    const made = await createProposal(c.state, publicly, proposal(c, what), c.cs);
    c.state = made.newState;
    return { message: hex(encodeMlsMessage(made.message)) };
  },
  async send(c, { text }) {
    const made = await createApplicationMessage(c.state, bytes(text), c.cs);
    c.state = made.newState;
    return { message: wire({ wireformat: 'mls_private_message', privateMessage: made.privateMessage }) };
  },
  async process(c, { message }) {
    // processMessage gives no PSKs to a private message, so that is called by itself.
    const m = read(message);
    const got = m.wireformat === 'mls_private_message'
      ? await processPrivateMessage(c.state, m.privateMessage, index(c), c.cs, acceptAll)
      : await processMessage(m, c.state, index(c), acceptAll, c.cs);
    c.state = got.newState;
    return { kind: got.kind, text: got.message && hex(got.message) };
  },
  // ts-mls 1.6.4 takes and gives the external_pub extension as the bare key, where RFC 9420 §12.4.3.2 has it with its length.
  // The two operations below put that right around it.
  async info(c) {
    const key = await c.cs.hpke.exportPublicKey((await c.cs.hpke.deriveKeyPair(c.state.keySchedule.externalSecret)).publicKey);
    const external = { extensionType: 'external_pub', extensionData: new Uint8Array([key.length, ...key]) };
    const info = await createGroupInfoWithRatchetTree(c.state.groupContext, c.state.confirmationTag, c.state, c.state.ratchetTree, [external], c.cs);
    return { info: wire({ wireformat: 'mls_group_info', groupInfo: info }) };
  },
  async external(c, { info, resync = false }) {
    const { groupInfo } = read(info);
    groupInfo.extensions.find = (match) => {
      const e = Array.prototype.find.call(groupInfo.extensions, match);
      return e?.extensionType === 'external_pub' ? { ...e, extensionData: e.extensionData.slice(1) } : e;
    };
    const made = await joinGroupExternal(groupInfo, c.keys.publicPackage, c.keys.privatePackage, resync, c.cs);
    c.state = made.newState;
    return { commit: wire({ wireformat: 'mls_public_message', publicMessage: made.publicMessage }) };
  },
  async state(c) {
    const exported = await mlsExporter(c.state.keySchedule.exporterSecret, 'interop', new TextEncoder().encode('context'), 40, c.cs);
    return { epoch: Number(c.state.groupContext.epoch), authenticator: hex(c.state.keySchedule.epochAuthenticator), exported: hex(exported) };
  },
};

let turn = Promise.resolve();
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => {
  turn = turn.then(async () => {
    try {
      const q = JSON.parse(line);
      if (q.op === 'client') return await operations.client(q);
      return await operations[q.op](clients.get(q.who), q);
    } catch (e) {
      return { error: String(e?.stack ?? e).slice(0, 500) };
    }
  }).then((answer) => console.log(JSON.stringify(answer)));
});
lines.on('close', () => turn.then(() => process.exit(0)));
