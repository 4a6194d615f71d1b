// The tools of the first TM Dev Lab benchmark of MCP servers over the official TypeScript SDK, as its manual shows a
// stateless server: one is made for each request.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { createInterface } from "node:readline";
import { z } from "zod";

const server_type = "ts-sdk";

// A loop, as in the publication, whose other servers recurse.
function fib(n) {
  let [a, b] = [0, 1];
  for (let i = 0; i < n; i++) [a, b] = [b, a + b];
  return a;
}

function upper(v) {
  if (typeof v === "string") return v.toUpperCase();
  if (Array.isArray(v)) return v.map(upper);
  if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, e]) => [k, upper(e)]));
  return v;
}

const result = (value) => ({ content: [{ type: "text", text: JSON.stringify({ ...value, server_type }) }] });

function makeServer() {
  const s = new McpServer({ name: "tmdevlab-v1", version: "1" });
  s.registerTool(
    "calculate_fibonacci",
    { description: "Calculates a Fibonacci number.", inputSchema: { n: z.number().int().min(0).max(40) } },
    ({ n }) => result({ input: n, result: fib(n) }),
  );
  s.registerTool(
    "fetch_external_data",
    { description: "Gets a URL and says how that went.", inputSchema: { endpoint: z.string() } },
    async ({ endpoint }) => {
      const out = { url: endpoint, status_code: 0 };
      const begin = performance.now();
      try {
        const r = await fetch(endpoint, { signal: AbortSignal.timeout(10_000) });
        out.status_code = r.status;
        await r.arrayBuffer();
      } catch (e) {
        out.error = String(e);
      }
      out.response_time_ms = performance.now() - begin;
      return result(out);
    },
  );
  s.registerTool(
    "process_json_data",
    { description: "Turns every text within an object into upper case.", inputSchema: { data: z.record(z.any()) } },
    ({ data }) => result({ original_keys: Object.keys(data), transformed_data: upper(data) }),
  );
  s.registerTool(
    "simulate_database_query",
    { description: "Waits as long as a query would take.", inputSchema: { query: z.string(), delay_ms: z.number().int().min(0).max(5000).default(0) } },
    async ({ query, delay_ms }) => {
      await new Promise((done) => setTimeout(done, delay_ms));
      return result({ query, delay_ms, timestamp: new Date().toISOString() });
    },
  );
  return s;
}

const [set, host] = process.argv.slice(2);
if (set !== "tmdevlab-v1") {
  console.error(`tools ${set}: want tmdevlab-v1`);
  process.exit(2);
}
const app = express();
app.use(express.json());
app.post("/mcp", async (req, res) => {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  res.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(req, res, req.body);
});

const listener = app.listen(0, host, () => {
  const { port } = listener.address();
  console.log(JSON.stringify({ ready: `http://${host}:${port}/mcp`, version: "1.26.0", language: "javascript", sdk: "@modelcontextprotocol/sdk" }));
});
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  if (line === "collect") global.gc?.();
  if (line !== "stats" && line !== "collect") return;
  console.log(JSON.stringify({ heap: process.memoryUsage().heapUsed })); // V8 counts no allocations
});
lines.on("close", () => process.exit(0));
