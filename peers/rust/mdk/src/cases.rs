//! The cases of the benchmark group on MDK. A call's input and output are what MDK takes and returns: events as values. Their
//! JSON, the check of a received event's signature and the gift wrap around a welcome are a relay client's, and in no window.
use crate::stretch::{Failure, Work};
use mdk_core::prelude::*;
use mdk_memory_storage::MdkMemoryStorage;
use nostr::{Event, EventBuilder, EventId, Keys, Kind, RelayUrl, Timestamp, UnsignedEvent};
use openmls::prelude::{MlsGroup, OpenMlsProvider};
use std::cell::RefCell;
use std::rc::Rc;

const TEXT: &str = "This is a message of seventy bytes, about as long as a text in a chat.";
const RELAY: &str = "wss://relay.example";

/// The kinds of Nostr event that stand for a chat's text and for a key package (MIP-00).
const CHAT: Kind = Kind::Custom(9);
const KEY_PACKAGE: Kind = Kind::Custom(30443);

/// A client with its storage and its Nostr key.
struct Client {
    keys: Keys,
    mdk: MDK<MdkMemoryStorage>,
}

impl Client {
    fn new() -> Self {
        Client { keys: Keys::generate(), mdk: MDK::new(MdkMemoryStorage::default()) }
    }

    /// A key package of last resort as it is published: a signed event.
    fn package(&self) -> Result<Event, Failure> {
        let made = self.mdk.create_key_package_for_event(&self.keys.public_key(), [RelayUrl::parse(RELAY)?])?;
        Ok(EventBuilder::new(KEY_PACKAGE, made.content).tags(made.tags_30443).sign_with_keys(&self.keys)?)
    }

    fn config(&self) -> Result<NostrGroupConfigData, Failure> {
        let (relays, admins) = (vec![RelayUrl::parse(RELAY)?], vec![self.keys.public_key()]);
        Ok(NostrGroupConfigData::new("group".into(), "".into(), None, None, None, relays, admins))
    }

    fn create(&self, packages: Vec<Event>, config: NostrGroupConfigData) -> Result<GroupResult, Failure> {
        Ok(self.mdk.create_group(&self.keys.public_key(), packages, config)?)
    }

    /// The welcome has come in the gift wrap of that identifier.
    fn join(&self, wrap: &EventId, welcome: &UnsignedEvent) -> Result<welcome_types::Welcome, Failure> {
        let welcome = self.mdk.process_welcome(wrap, welcome)?;
        self.mdk.accept_welcome(&welcome)?;
        Ok(welcome)
    }

    fn say(&self, group: &GroupId, at: Timestamp) -> Result<Event, Failure> {
        let rumor = EventBuilder::new(CHAT, TEXT).custom_created_at(at).build(self.keys.public_key());
        Ok(self.mdk.create_message(group, rumor, None)?)
    }

    /// An update path without proposals, which also replaces the member's signature key, and is merged.
    fn update(&self, group: &GroupId) -> Result<Event, Failure> {
        let update = self.mdk.self_update(group)?;
        self.mdk.merge_pending_commit(group)?;
        Ok(update.evolution_event)
    }

    fn authenticator(&self, group: &GroupId) -> Result<Vec<u8>, Failure> {
        let group = MlsGroup::load(self.mdk.provider.storage(), group.inner())?.ok_or("the group is not in the storage")?;
        Ok(group.epoch_authenticator().as_slice().to_vec())
    }
}

/// A group whose last added member joined it.
struct Pair {
    founder: Client,
    last: Client,
    group: GroupId,
    begin: Timestamp,
}

impl Pair {
    fn new(members: usize, others: &[Event]) -> Result<Self, Failure> {
        let Invited { founder, last, group, welcome } = invite(members, others)?;
        last.join(&EventId::all_zeros(), &welcome)?;
        Ok(Pair { founder, last, group, begin: Timestamp::now() })
    }

    /// Messages are a second apart, so that no two are the same event.
    fn say(&self, i: usize) -> Result<Event, Failure> {
        self.founder.say(&self.group, self.begin + i as u64)
    }

    fn said(&self, read: &MessageProcessingResult) -> bool {
        matches!(read, MessageProcessingResult::ApplicationMessage(m)
            if m.content == TEXT && m.kind == CHAT && m.pubkey == self.founder.keys.public_key())
    }

    fn hears(&self, message: &Event) -> bool {
        message.verify().is_ok() && self.last.mdk.process_message(message).is_ok_and(|m| self.said(&m))
    }

    fn follow(&self, commit: &Event) -> Result<(), Failure> {
        match self.last.mdk.process_message(commit)? {
            MessageProcessingResult::Commit { .. } => Ok(()),
            other => Err(format!("not a commit that is in force: {other:?}").into()),
        }
    }
}

/// A group, with a welcome that its last member has not used yet.
struct Invited {
    founder: Client,
    last: Client,
    group: GroupId,
    welcome: UnsignedEvent,
}

fn invite(members: usize, others: &[Event]) -> Result<Invited, Failure> {
    let (founder, last) = (Client::new(), Client::new());
    let packages = others[..members - 1].iter().cloned().chain([last.package()?]).collect();
    let mut made = founder.create(packages, founder.config()?)?;
    let welcome = made.welcome_rumors.pop().ok_or("no welcome was made")?;
    Ok(Invited { founder, last, group: made.group.mls_group_id, welcome })
}

/// The key packages of members that take no further part.
fn packages(n: usize) -> Result<Vec<Event>, Failure> {
    (0..n).map(|_| Client::new().package()).collect()
}

fn count(results: impl Iterator<Item = bool>) -> u64 {
    results.filter(|good| *good).count() as u64
}

/// The case's name is its operation and how many members there are beside the founder.
pub fn prepare(case: &str, calls: usize) -> Result<Work, Failure> {
    let (op, parameter) = case.split_once('/').unwrap_or((case, ""));
    let none = || Failure::from(format!("case {case} is none of this engine"));
    let members = match (op, parameter) {
        ("join_welcome" | "send_app_message" | "ingest_app_message", "") | ("send_app_message", "first") => 1,
        ("create_group" | "join_welcome" | "ingest_commit", n) => n.parse().ok().filter(|n| (1..=1_000).contains(n)).ok_or_else(none)?,
        _ => return Err(none()),
    };
    match op {
        "create_group" => create(members, calls),
        "join_welcome" => join(members, calls),
        "send_app_message" => send(parameter == "first", calls),
        "ingest_app_message" => ingest(calls),
        _ => ingest_commit(members, calls),
    }
}

/// create: create_group, from key package events to the welcomes' unsigned events. It checks the key packages, makes a
/// signature key and a group of one, adds everyone with one commit, merges it, and writes what a client must know of it.
fn create(members: usize, calls: usize) -> Result<Work, Failure> {
    let founder = Client::new();
    let others: Vec<Client> = (0..members).map(|_| Client::new()).collect();
    let packages = others.iter().map(Client::package).collect::<Result<Vec<_>, _>>()?;
    let mut inputs = Vec::new();
    for _ in 0..calls {
        inputs.push(Some((packages.clone(), founder.config()?)));
    }
    let founder = Rc::new(founder);
    let made = Rc::new(RefCell::new(Vec::new()));
    let (ours, got) = (founder.clone(), made.clone());
    Ok(Work {
        call: Box::new(move |i| {
            let (packages, config) = inputs[i].take().ok_or("the call was made before")?;
            got.borrow_mut().push(ours.create(packages, config)?);
            Ok(())
        }),
        check: Box::new(move || count(made.borrow().iter().enumerate().map(|(i, g)| welcomes(&founder, &others, i, g).unwrap_or(false)))),
    })
}

/// One of those that group number i adds can join it, to be in the founder's epoch.
fn welcomes(founder: &Client, others: &[Client], i: usize, made: &GroupResult) -> Result<bool, Failure> {
    let at = i % others.len();
    let mut wrap = [0; EventId::LEN];
    wrap[..8].copy_from_slice(&(i as u64).to_be_bytes());
    let id = &made.group.mls_group_id;
    let welcome = others[at].join(&EventId::from_byte_array(wrap), &made.welcome_rumors[at])?;
    let members = others.len() + 1;
    Ok(made.welcome_rumors.len() == others.len()
        && welcome.member_count as usize == members
        && others[at].mdk.get_members(id)?.len() == members
        && others[at].authenticator(id)? == founder.authenticator(id)?)
}

/// join: process_welcome and accept_welcome, from a welcome's unsigned event to a group in the storage. Both decrypt the welcome
/// and check the tree. Each call has a client of its own, because a second join takes the place of the first.
fn join(members: usize, calls: usize) -> Result<Work, Failure> {
    let others = packages(members - 1)?;
    let invited = Rc::new((0..calls).map(|_| invite(members, &others)).collect::<Result<Vec<_>, _>>()?);
    let joined = Rc::new(RefCell::new(Vec::new()));
    let (ours, got) = (invited.clone(), joined.clone());
    Ok(Work {
        call: Box::new(move |i| {
            let welcome = ours[i].last.join(&EventId::all_zeros(), &ours[i].welcome)?;
            got.borrow_mut().push((i, welcome));
            Ok(())
        }),
        check: Box::new(move || {
            count(joined.borrow().iter().map(|(i, welcome)| {
                let Invited { founder, last, group, .. } = &invited[*i];
                let same = || Ok::<_, Failure>(last.authenticator(group)? == founder.authenticator(group)?);
                welcome.member_count as usize == members + 1 && same().unwrap_or(false)
            }))
        }),
    })
}

/// send: create_message, from a text to an event. The text becomes an unsigned event, its JSON an MLS message, which is
/// encrypted again with a key of the epoch, put into an event, signed with a key made for it, and recorded.
fn send(first: bool, calls: usize) -> Result<Work, Failure> {
    let n = if first { calls } else { 1 };
    let pairs = (0..n).map(|_| Pair::new(1, &[])).collect::<Result<Vec<_>, _>>()?;
    if !first && !pairs[0].hears(&pairs[0].say(0)?) {
        return Err("the opening message is not read".into());
    }
    let pairs = Rc::new(pairs);
    let sent = Rc::new(RefCell::new(Vec::new()));
    let (ours, got) = (pairs.clone(), sent.clone());
    Ok(Work {
        call: Box::new(move |i| {
            let message = ours[i % n].say(i + 1)?;
            got.borrow_mut().push((i, message));
            Ok(())
        }),
        check: Box::new(move || count(sent.borrow().iter().map(|(i, message)| pairs[i % n].hears(message)))),
    })
}

/// ingest: process_message, from an event to a text: the outer encryption, the MLS message, who wrote it, and the record of it.
fn ingest(calls: usize) -> Result<Work, Failure> {
    let pair = Pair::new(1, &[])?;
    if !pair.hears(&pair.say(0)?) {
        return Err("the opening message is not read".into());
    }
    let messages = (0..calls).map(|i| pair.say(i + 1)).collect::<Result<Vec<_>, _>>()?;
    let pair = Rc::new(pair);
    let read = Rc::new(RefCell::new(Vec::new()));
    let (ours, got) = (pair.clone(), read.clone());
    Ok(Work {
        call: Box::new(move |i| {
            let message = ours.last.mdk.process_message(&messages[i])?;
            got.borrow_mut().push(message);
            Ok(())
        }),
        check: Box::new(move || count(read.borrow().iter().map(|m| pair.said(m)))),
    })
}

/// ingest_commit: process_message of another member's update, each the next epoch's: the outer encryption, the check of the
/// commit and of who may make it, a snapshot of the group to go back to, the merge, and the next epoch's outer key.
fn ingest_commit(members: usize, calls: usize) -> Result<Work, Failure> {
    let pair = Pair::new(members, &packages(members - 1)?)?;
    pair.follow(&pair.founder.update(&pair.group)?)?; // the committer was met before
    let commits = (0..calls).map(|_| pair.founder.update(&pair.group)).collect::<Result<Vec<_>, _>>()?;
    let pair = Rc::new(pair);
    let followed = Rc::new(RefCell::new(0));
    let (ours, got) = (pair.clone(), followed.clone());
    Ok(Work {
        call: Box::new(move |i| {
            ours.follow(&commits[i])?;
            *got.borrow_mut() += 1;
            Ok(())
        }),
        // An epoch's authenticator follows from every commit before it, so that the last one vouches for all.
        check: Box::new(move || {
            let same = || Ok::<_, Failure>(pair.last.authenticator(&pair.group)? == pair.founder.authenticator(&pair.group)?);
            if same().unwrap_or(false) { *followed.borrow() } else { 0 }
        }),
    })
}
