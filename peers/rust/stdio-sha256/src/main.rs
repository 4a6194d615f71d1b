//! A reference engine: it performs an operation in its own process, times it there, and speaks one line of JSON each way.
//! Put your own operations into `operation`: a case's name without its size, and what makes a result from the input.

use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use std::io::{BufRead, Write};
use std::time::Instant;

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn operation(case: &str) -> Option<fn(&Value) -> Option<String>> {
    match case.split('/').next() {
        Some("digest") => Some(|input| input["note"].as_str().map(sha256)),
        _ => None,
    }
}

fn perform(call: &Value) -> Value {
    let id = &call["id"];
    let case = call["case"].as_str().unwrap_or_default();
    let Some(run) = operation(case) else {
        return json!({"id": id, "error": format!("no case {case}")});
    };
    let begin = Instant::now();
    let result = run(&call["input"]);
    let ns = begin.elapsed().as_nanos() as u64;
    match result {
        Some(result) => json!({"id": id, "ns": ns, "digest": sha256(&result)}),
        None => json!({"id": id, "error": format!("case {case}: its input is not what it takes")}),
    }
}

fn answer(line: &str) -> Option<Value> {
    if line == "stats" {
        return None; // this program counts no allocations
    }
    Some(match serde_json::from_str::<Value>(line) {
        Ok(call) => perform(&call),
        Err(e) => json!({"id": null, "error": e.to_string()}),
    })
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let ready = json!({
        "ready": "stdio:", "version": env!("CARGO_PKG_VERSION"), "name": "rust-sha256", "language": "rust", "sdk": "sha2"
    });
    writeln!(out, "{ready}")?;
    for line in std::io::stdin().lock().lines() {
        if let Some(value) = answer(line?.trim()) {
            writeln!(out, "{value}")?;
        }
    }
    Ok(())
}
