// The official TypeScript SDK's client against a server of ours: it begins, lists the tools, calls one, follows the progress
// of another, is asked where there is a session, and ends. Any surprise ends it with status 1.
//
//   node client.mjs http://127.0.0.1:8080/mcp [asked]
//   node client.mjs stdio toll serve ops --envelope mcp-stdio --conformance
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [where, ...rest] = process.argv.slice(2);
const limit = setTimeout(() => { console.error("ts-sdk client: not done within 30 s"); process.exit(1); }, 30_000);
limit.unref();

const stdio = where === "stdio";
const transport = stdio
  ? new StdioClientTransport({ command: rest[0], args: rest.slice(1) })
  : new StreamableHTTPClientTransport(new URL(where));
const client = new Client({ name: "ts-sdk-client", version: "1" }, { capabilities: { elicitation: {} } });
let asked = 0;
client.setRequestHandler(ElicitRequestSchema, async () => {
  asked++;
  return { action: "accept", content: { username: "node" } };
});

const did = [];
await client.connect(transport);
assert.equal(client.getServerVersion().name, "toll");
did.push("begin");

const { tools } = await client.listTools();
const note = tools.find((t) => t.name === "note");
assert.ok(note?.inputSchema && note?.outputSchema, "no tool note with both schemas");
did.push("list");

const result = await client.callTool({ name: "note", arguments: { id: 7, note: 'über "alles"\n' } });
assert.deepEqual(result.structuredContent, { id: 7, note: 'über "alles"\n', status: "done", owner: "toll" });
assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
did.push("call");

const heard = [];
await client.callTool({ name: "test_tool_with_progress", arguments: {} }, undefined, { onprogress: (p) => heard.push(p.progress) });
assert.deepEqual(heard, [0, 50, 100]);
did.push("streamed progress");

if (stdio || rest[0] === "asked") {
  const r = await client.callTool({ name: "test_elicitation", arguments: { message: "who?" } });
  assert.ok(!r.isError && asked === 1, `asked ${asked} times, result ${JSON.stringify(r.content)}`);
  did.push("elicitation");
}
if (transport.terminateSession) await transport.terminateSession();
await client.close();
did.push("close");
console.log(`ts-sdk client, ${transport.protocolVersion ?? "stdio"}: ${did.join(", ")}`);
