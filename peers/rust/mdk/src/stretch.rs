//! An engine behind the stdio door: a question per line, an answer per line. The same in every engine written in Rust.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Instant;

/// What went wrong, for the person reading.
pub type Failure = Box<dyn std::error::Error>;

/// The calls of one stretch, and a look at what came of them.
pub struct Work {
    pub call: Box<dyn FnMut(usize) -> Result<(), Failure>>,
    pub check: Box<dyn FnOnce() -> u64>,
}

/// Makes the calls of a case ready, so many of them.
pub type Prepare = fn(&str, usize) -> Result<Work, Failure>;

#[derive(Serialize)]
struct Ready<'a> {
    ready: &'a str,
    language: &'a str,
    name: &'a str,
    version: &'a str,
    sdk: &'a str,
}

#[derive(Deserialize)]
struct Question {
    id: i64,
    case: String,
    calls: usize,
    callers: usize,
}

#[derive(Serialize, Default)]
struct Answer {
    id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    ns: Vec<u64>,
    elapsed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    checked: u64,
}

/// The time that this process used, all threads, both modes.
fn cpu_ns() -> Option<u64> {
    // SAFETY: a zeroed rusage is a valid one, and getrusage writes no more than that.
    let (usage, rc) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let rc = libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        (usage, rc)
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (rc == 0).then(|| ns(usage.ru_utime) + ns(usage.ru_stime))
}

fn run(q: &Question, prepare: Prepare) -> Result<Answer, Failure> {
    if q.callers != 1 {
        return Err(format!("a group has one writer, so one caller; {} were asked for", q.callers).into());
    }
    let mut work = prepare(&q.case, q.calls)?;
    let mut answer = Answer { id: q.id, ..Answer::default() };
    answer.ns.reserve(q.calls);
    let before = cpu_ns();
    let begin = Instant::now();
    for i in 0..q.calls {
        let start = Instant::now();
        match (work.call)(i) {
            Ok(()) => answer.ns.push(start.elapsed().as_nanos() as u64),
            Err(e) => {
                *answer.failed.entry("other").or_default() += 1;
                answer.why.get_or_insert(e.to_string());
            }
        }
    }
    answer.elapsed_ns = begin.elapsed().as_nanos() as u64;
    answer.cpu_ns = before.zip(cpu_ns()).map(|(a, b)| b - a);
    answer.checked = (work.check)();
    Ok(answer)
}

/// Answers the questions of the standard input, until it ends.
pub fn serve(name: &str, sdk: &str, prepare: Prepare) -> io::Result<()> {
    let mut out = io::stdout();
    let ready = Ready { ready: "stdio:", language: "rust", name, version: env!("CARGO_PKG_VERSION"), sdk };
    serde_json::to_writer(&mut out, &ready)?;
    writeln!(out)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == "stats" {
            writeln!(out, "{{}}")?;
            continue;
        }
        let answer = match serde_json::from_str::<Question>(&line) {
            Err(e) => Answer { error: Some(format!("question: {e}")), ..Answer::default() },
            Ok(q) => run(&q, prepare).unwrap_or_else(|e| Answer { id: q.id, error: Some(e.to_string()), ..Answer::default() }),
        };
        serde_json::to_writer(&mut out, &answer)?;
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}
