// OpenMLS, compiled to WebAssembly, as an engine of the benchmark group. Its binding adds one member at a time and gives
// out the ratchet tree apart; what it has no call for is no case of it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as mls from 'openmls-wasm/openmls_wasm_bg.js';
import { parse, same, serve, text } from './stretch.js';

const file = createRequire(import.meta.url).resolve('openmls-wasm/openmls_wasm_bg.wasm');
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)), { './openmls_wasm_bg.js': mls });
mls.__wbg_set_wasm(exports);
exports.__wbindgen_start();

function client(name) {
  const provider = new mls.Provider();
  return { provider, identity: new mls.Identity(provider, name) };
}

// pair is a founder and one it invites, with everything that is made before a group is.
function pair() {
  const founder = client('founder');
  const member = client('member');
  return { founder, member, keyPackage: member.identity.key_package(member.provider) };
}

let groups = 0;

function create({ founder, keyPackage }) {
  const group = mls.Group.create_new(founder.provider, founder.identity, `group ${groups++}`);
  const added = group.propose_and_commit_add(founder.provider, founder.identity, keyPackage);
  group.merge_pending_commit(founder.provider);
  return { group, welcome: added.welcome };
}

const join = ({ member }, { group, welcome }) => mls.Group.join(member.provider, welcome, group.export_ratchet_tree());
const exported = (group, who) => group.export_key(who.provider, 'bench', new Uint8Array(), 32);
const agreed = (p, a, b) => same(exported(a, p.founder), exported(b, p.member));

const cases = {
  create_group(calls) {
    const pairs = Array.from({ length: calls }, pair);
    const made = [];
    return {
      call: (i) => { made.push(create(pairs[i])); },
      check: (n) => made.slice(0, n).filter((m, i) => agreed(pairs[i], m.group, join(pairs[i], m))).length,
    };
  },
  join_welcome(calls) {
    const pairs = Array.from({ length: calls }, pair);
    const made = pairs.map(create);
    const trees = made.map((m) => m.group.export_ratchet_tree());
    const joined = [];
    return {
      call: (i) => { joined.push(mls.Group.join(pairs[i].member.provider, made[i].welcome, trees[i])); },
      check: (n) => joined.slice(0, n).filter((g, i) => agreed(pairs[i], made[i].group, g)).length,
    };
  },
  send_app_message(calls, first) {
    const n = first ? calls : 1;
    const pairs = Array.from({ length: n }, pair);
    const made = pairs.map(create);
    const receivers = pairs.map((p, i) => join(p, made[i]));
    const send = (i) => made[i % n].group.create_message(pairs[i % n].founder.provider, pairs[i % n].founder.identity, text);
    if (!first) receivers[0].process_message(pairs[0].member.provider, send(0));
    const sent = [];
    return {
      call: (i) => { sent.push(send(i)); },
      check: (k) => sent.slice(0, k).filter((m, i) => same(receivers[i % n].process_message(pairs[i % n].member.provider, m), text)).length,
    };
  },
  ingest_app_message(calls) {
    const p = pair();
    const made = create(p);
    const receiver = join(p, made);
    const messages = Array.from({ length: calls + 1 }, () => made.group.create_message(p.founder.provider, p.founder.identity, text));
    receiver.process_message(p.member.provider, messages.shift());
    const got = [];
    return {
      call: (i) => { got.push(receiver.process_message(p.member.provider, messages[i])); },
      check: (n) => got.slice(0, n).filter((m) => same(m, text)).length,
    };
  },
};

serve({ name: 'openmls-wasm', version: '0.1.0', sdk: 'OpenMLS compiled to WebAssembly, in node' }, async (name, calls) => {
  const { op, members, first } = parse(name);
  if (!cases[op] || members !== 1) throw new Error(`case ${name} is none of this engine: its binding adds one member and takes in no commits`);
  return op === 'send_app_message' ? cases[op](calls, first) : cases[op](calls);
});
