// The stdio door for an engine that makes whole stretches: a question per line, an answer per line. A bench prepares the
// calls of a stretch and returns { call(i), check() }; only call is in the window.
import readline from 'node:readline';

async function run(question, bench) {
  const { id, calls, callers } = question;
  if (callers !== 1) return { id, error: `a group has one writer, so one caller; ${callers} were asked for` };
  const work = await bench(question.case, calls);
  if (global.gc) global.gc();
  const ns = [];
  const failed = {};
  let why;
  const cpu = process.cpuUsage();
  const begin = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) {
    const start = process.hrtime.bigint();
    try {
      await work.call(i);
      ns.push(Number(process.hrtime.bigint() - start));
    } catch (e) {
      failed.other = (failed.other ?? 0) + 1;
      why ??= String(e?.stack ?? e);
    }
  }
  const elapsed_ns = Number(process.hrtime.bigint() - begin);
  const used = process.cpuUsage(cpu);
  const answer = { id, ns, elapsed_ns, cpu_ns: (used.user + used.system) * 1000, checked: await work.check(ns.length) };
  return why ? { ...answer, failed, why: why.slice(0, 300) } : answer;
}

export function serve(about, bench) {
  console.log(JSON.stringify({ ready: 'stdio:', language: 'javascript', ...about }));
  let turn = Promise.resolve();
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    turn = turn.then(async () => {
      if (line === 'stats') return { heap: process.memoryUsage().heapUsed };
      let question;
      try {
        question = JSON.parse(line);
        return await run(question, bench);
      } catch (e) {
        return { id: question?.id, error: String(e?.message ?? e) };
      }
    }).then((answer) => console.log(JSON.stringify(answer)));
  });
  lines.on('close', () => turn.then(() => process.exit(0)));
}

// The case's parameter: create_group/32 has 32 members beside the founder.
export function parse(name) {
  const [op, parameter] = name.split('/');
  const members = parameter === undefined || parameter === 'first' ? 1 : Number(parameter);
  if (!Number.isInteger(members) || members < 1) throw new Error(`case ${name} is none of this engine`);
  return { op, members, first: parameter === 'first' };
}

export const text = new TextEncoder().encode('This is a message of seventy bytes, about as long as a text in a chat.');
export const same = (a, b) => a !== undefined && Buffer.compare(Buffer.from(a), Buffer.from(b)) === 0;
