// The operation note over plain node:http, as its manual shows it.
'use strict';
const http = require('node:http');
const readline = require('node:readline');

function send(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  res.end(body);
}

function note(res, body) {
  let call;
  try {
    call = JSON.parse(body);
  } catch (e) {
    return send(res, 400, { error: e.message });
  }
  if (!Number.isSafeInteger(call?.id) || typeof call.note !== 'string') {
    return send(res, 400, { error: 'want {"id":<integer>,"note":<text>}' });
  }
  send(res, 200, { id: call.id, note: call.note, status: 'done', owner: 'toll' });
}

const server = http.createServer((req, res) => {
  if (req.method === 'POST' && req.url === '/v1/note') {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => note(res, Buffer.concat(chunks).toString()));
  } else if (req.method === 'GET' && req.url === '/healthz') {
    send(res, 200, { ok: true });
  } else {
    send(res, 404, { error: 'no such path' });
  }
});
server.keepAliveTimeout = 0; // a connection lives as long as its caller wants

server.listen(0, '127.0.0.1', () => {
  const ready = `http://127.0.0.1:${server.address().port}`;
  console.log(JSON.stringify({ ready, version: process.version, name: 'node-http', language: 'javascript', sdk: 'node:http' }));
});

const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => {
  if (line === 'stats') console.log(JSON.stringify({ heap: process.memoryUsage().heapUsed }));
});
lines.on('close', () => process.exit(0));
