//! The tools of the first TM Dev Lab benchmark of MCP servers over rmcp, as its manual shows a stateless server.

use std::{env, io::BufRead, process, time::Duration};

use axum::serve::ListenerExt;
use rmcp::{
    ErrorData, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{CallToolResult, Content, ServerCapabilities, ServerInfo},
    schemars, tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const SERVER: &str = "rmcp";

#[derive(Deserialize, schemars::JsonSchema)]
struct Fibonacci {
    n: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Fetch {
    endpoint: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Process {
    data: Map<String, Value>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Query {
    query: String,
    #[serde(default)]
    delay_ms: i64,
}

fn fib(n: i64) -> i64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn upper(v: &Value) -> Value {
    match v {
        Value::String(s) => Value::String(s.to_uppercase()),
        Value::Array(a) => Value::Array(a.iter().map(upper).collect()),
        Value::Object(o) => Value::Object(o.iter().map(|(k, e)| (k.clone(), upper(e))).collect()),
        other => other.clone(),
    }
}

fn result(v: Value) -> Result<CallToolResult, ErrorData> {
    Ok(CallToolResult::success(vec![Content::text(v.to_string())]))
}

#[derive(Clone)]
struct Tools {
    client: reqwest::Client,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Tools {
    #[tool(description = "Calculates a Fibonacci number by naive recursion.")]
    async fn calculate_fibonacci(&self, Parameters(p): Parameters<Fibonacci>) -> Result<CallToolResult, ErrorData> {
        if !(0..=40).contains(&p.n) {
            return Err(ErrorData::invalid_params("n: want 0 to 40", None));
        }
        result(json!({"input": p.n, "result": fib(p.n), "server_type": SERVER}))
    }

    #[tool(description = "Gets a URL and says how that went.")]
    async fn fetch_external_data(&self, Parameters(p): Parameters<Fetch>) -> Result<CallToolResult, ErrorData> {
        let begin = std::time::Instant::now();
        let (status, error) = match self.client.get(&p.endpoint).send().await {
            Ok(reply) => {
                let status = reply.status().as_u16();
                match reply.bytes().await {
                    Ok(_) => (status, None),
                    Err(e) => (0, Some(e.to_string())),
                }
            }
            Err(e) => (0, Some(e.to_string())),
        };
        let ms = begin.elapsed().as_secs_f64() * 1000.0;
        result(json!({"url": p.endpoint, "status_code": status, "response_time_ms": ms, "error": error, "server_type": SERVER}))
    }

    #[tool(description = "Turns every text within an object into upper case.")]
    async fn process_json_data(&self, Parameters(p): Parameters<Process>) -> Result<CallToolResult, ErrorData> {
        let keys: Vec<&String> = p.data.keys().collect();
        let data = upper(&Value::Object(p.data.clone()));
        result(json!({"original_keys": keys, "transformed_data": data, "server_type": SERVER}))
    }

    #[tool(description = "Waits as long as a query would take.")]
    async fn simulate_database_query(&self, Parameters(p): Parameters<Query>) -> Result<CallToolResult, ErrorData> {
        if !(0..=5000).contains(&p.delay_ms) {
            return Err(ErrorData::invalid_params("delay_ms: want 0 to 5000", None));
        }
        tokio::time::sleep(Duration::from_millis(p.delay_ms as u64)).await;
        let now = chrono::Utc::now().to_rfc3339();
        result(json!({"query": p.query, "delay_ms": p.delay_ms, "timestamp": now, "server_type": SERVER}))
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerInfo {
        ServerInfo { capabilities: ServerCapabilities::builder().enable_tools().build(), ..Default::default() }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = env::args().collect();
    if args.len() != 3 || args[1] != "tmdevlab-v1" {
        return Err(format!("usage: {} tmdevlab-v1 HOST", args[0]).into());
    }
    let tools = Tools {
        client: reqwest::Client::builder().timeout(Duration::from_secs(10)).build()?,
        tool_router: Tools::tool_router(),
    };
    let config = StreamableHttpServerConfig { stateful_mode: false, json_response: true, ..Default::default() };
    let service: StreamableHttpService<Tools, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(tools.clone()), Default::default(), config);
    let listener = tokio::net::TcpListener::bind((args[2].as_str(), 0)).await?;
    let ready = format!("http://{}/mcp", listener.local_addr()?);
    // Without it each reply of two writes waits 40 ms for the client's delayed acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    println!("{}", json!({"ready": ready, "version": "0.17.0", "language": "rust", "sdk": "rmcp"}));
    std::thread::spawn(|| {
        // The line stats is not answered: the allocator counts nothing.
        for _ in std::io::stdin().lock().lines() {}
        process::exit(0);
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
