// A reference engine: it performs an operation in its own process, times it there, and speaks one line of JSON each way.
// Put your own operations into this table: a case's name without its size, and what makes a result from the input.
'use strict';
const crypto = require('node:crypto');
const readline = require('node:readline');

const sha256 = (text) => crypto.createHash('sha256').update(text).digest('hex');

const operations = {
  digest: (input) => sha256(input.note),
};

function perform({ id, case: name, input }) {
  const operation = operations[name.split('/')[0]];
  if (!operation) return { id, error: `no case ${name}` };
  const begin = process.hrtime.bigint();
  const result = operation(input);
  const ns = Number(process.hrtime.bigint() - begin);
  return { id, ns, digest: sha256(result) };
}

function answer(line) {
  if (line === 'stats') return { heap: process.memoryUsage().heapUsed };
  let call;
  try {
    call = JSON.parse(line);
    return perform(call);
  } catch (e) {
    return { id: call?.id, error: e.message };
  }
}

console.log(JSON.stringify({ ready: 'stdio:', version: process.version, name: 'node-sha256', language: 'javascript', sdk: 'node:crypto' }));
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => console.log(JSON.stringify(answer(line))));
lines.on('close', () => process.exit(0));
