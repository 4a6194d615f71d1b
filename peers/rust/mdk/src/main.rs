//! The Marmot Development Kit as an engine of the benchmark group, behind the stdio door. Its calls take and return Nostr
//! events, and load and write the group in its storage, here its own in memory; no call of it is an MLS operation alone.
//! Whatever a case needs is made before its window and verified after it.
mod cases;
mod stretch;

fn main() -> std::io::Result<()> {
    let sdk = "MDK on OpenMLS 0.8.3; not the engine alone: Nostr events, outer encryption, signatures, in-memory storage";
    stretch::serve("mdk", sdk, cases::prepare)
}
