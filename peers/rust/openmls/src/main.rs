//! OpenMLS as an engine of the benchmark group, behind the stdio door: a question per line, an answer per line. Whatever a
//! case needs is made before its window and verified after it. OpenMLS writes the state of a group to its provider's
//! storage with every operation; the one here is its own, in memory.
mod cases;
mod stretch;

fn main() -> std::io::Result<()> {
    stretch::serve("openmls", "OpenMLS, RustCrypto provider, in-memory storage", cases::prepare)
}
