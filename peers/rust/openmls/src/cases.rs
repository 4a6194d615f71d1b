//! The cases of the benchmark group on OpenMLS.
use crate::stretch::{Failure, Work};
use openmls::prelude::tls_codec::{Deserialize as _, Serialize as _};
use openmls::prelude::*;
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;
use std::cell::RefCell;
use std::rc::Rc;

const SUITE: Ciphersuite = Ciphersuite::MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519;
const TEXT: &[u8] = b"This is a message of seventy bytes, about as long as a text in a chat.";

/// A client with its storage, its key and its key package, encoded as it would be published.
struct Client {
    provider: OpenMlsRustCrypto,
    signer: SignatureKeyPair,
    credential: CredentialWithKey,
    package: Vec<u8>,
}

impl Client {
    fn new(name: &str) -> Result<Self, Failure> {
        let provider = OpenMlsRustCrypto::default();
        let signer = SignatureKeyPair::new(SUITE.signature_algorithm())?;
        signer.store(provider.storage()).map_err(|e| format!("{e:?}"))?;
        let credential = CredentialWithKey {
            credential: BasicCredential::new(name.as_bytes().to_vec()).into(),
            signature_key: signer.to_public_vec().into(),
        };
        let bundle = KeyPackage::builder().build(SUITE, &provider, &signer, credential.clone())?;
        let package = MlsMessageOut::from(bundle.key_package().clone()).tls_serialize_detached()?;
        Ok(Client { provider, signer, credential, package })
    }

    fn found(&self) -> Result<MlsGroup, Failure> {
        let config = MlsGroupCreateConfig::builder().ciphersuite(SUITE).use_ratchet_tree_extension(true).build();
        Ok(MlsGroup::new(&self.provider, &self.signer, &config, self.credential.clone())?)
    }

    /// Adds everyone with one commit that has an update path, and returns the welcome's bytes.
    fn add(&self, group: &mut MlsGroup, packages: &[&[u8]]) -> Result<Vec<u8>, Failure> {
        let packages = packages.iter().map(|p| self.read_package(p)).collect::<Result<Vec<_>, _>>()?;
        let (_, welcome, _) = group.add_members(&self.provider, &self.signer, &packages)?;
        group.merge_pending_commit(&self.provider)?;
        Ok(welcome.tls_serialize_detached()?)
    }

    fn read_package(&self, bytes: &[u8]) -> Result<KeyPackage, Failure> {
        match MlsMessageIn::tls_deserialize_exact(bytes)?.extract() {
            MlsMessageBodyIn::KeyPackage(k) => Ok(k.validate(self.provider.crypto(), ProtocolVersion::Mls10)?),
            _ => Err("not a key package".into()),
        }
    }

    fn join(&self, welcome: &[u8]) -> Result<MlsGroup, Failure> {
        let config = MlsGroupJoinConfig::builder().use_ratchet_tree_extension(true).build();
        let MlsMessageBodyIn::Welcome(w) = MlsMessageIn::tls_deserialize_exact(welcome)?.extract() else {
            return Err("not a welcome".into());
        };
        Ok(StagedWelcome::new_from_welcome(&self.provider, &config, w, None)?.into_group(&self.provider)?)
    }

    fn seal(&self, group: &mut MlsGroup) -> Result<Vec<u8>, Failure> {
        Ok(group.create_message(&self.provider, &self.signer, TEXT)?.tls_serialize_detached()?)
    }

    fn process(&self, group: &mut MlsGroup, message: &[u8]) -> Result<ProcessedMessageContent, Failure> {
        let message = MlsMessageIn::tls_deserialize_exact(message)?.try_into_protocol_message()?;
        Ok(group.process_message(&self.provider, message)?.into_content())
    }

    fn read(&self, group: &mut MlsGroup, message: &[u8]) -> Result<Vec<u8>, Failure> {
        match self.process(group, message)? {
            ProcessedMessageContent::ApplicationMessage(m) => Ok(m.into_bytes()),
            _ => Err("not an application message".into()),
        }
    }
}

/// A group whose last added member joined it.
struct Pair {
    founder: Client,
    sender: MlsGroup,
    last: Client,
    receiver: MlsGroup,
}

fn pair(members: usize, others: &[Client]) -> Result<Pair, Failure> {
    let (founder, last, sender, welcome) = invite(members, others)?;
    let receiver = last.join(&welcome)?;
    Ok(Pair { founder, sender, last, receiver })
}

/// A group, with a welcome that its last member has not used yet.
fn invite(members: usize, others: &[Client]) -> Result<(Client, Client, MlsGroup, Vec<u8>), Failure> {
    let founder = Client::new("founder")?;
    let last = Client::new(&format!("member-{:04}", members - 1))?;
    let mut group = founder.found()?;
    let packages: Vec<&[u8]> = others[..members - 1].iter().chain([&last]).map(|c| c.package.as_slice()).collect();
    let welcome = founder.add(&mut group, &packages)?;
    Ok((founder, last, group, welcome))
}

fn clients(n: usize) -> Result<Vec<Client>, Failure> {
    (0..n).map(|i| Client::new(&format!("member-{i:04}"))).collect()
}

fn authenticator(g: &MlsGroup) -> Vec<u8> {
    g.epoch_authenticator().as_slice().to_vec()
}

fn count(results: impl Iterator<Item = bool>) -> u64 {
    results.filter(|good| *good).count() as u64
}

/// The case's name is its operation and how many members there are beside the founder.
pub fn prepare(case: &str, calls: usize) -> Result<Work, Failure> {
    let (op, parameter) = case.split_once('/').unwrap_or((case, ""));
    let members = match parameter {
        "" | "first" => 1,
        n => n.parse::<usize>().ok().filter(|n| (1..=10_000).contains(n)).ok_or(format!("case {case} is none of this engine"))?,
    };
    match op {
        "create_group" => create(members),
        "join_welcome" => join(members, calls),
        "send_app_message" => send(parameter == "first", calls),
        "ingest_app_message" => ingest(calls),
        "ingest_commit" => ingest_commit(members, calls),
        _ => Err(format!("case {case} is none of this engine").into()),
    }
}

/// create: a group of one, then one commit with an update path that adds everyone.
fn create(members: usize) -> Result<Work, Failure> {
    let founder = Client::new("founder")?;
    let others = clients(members)?;
    let packages: Vec<Vec<u8>> = others.iter().map(|c| c.package.clone()).collect();
    let made = Rc::new(RefCell::new(Vec::new()));
    let got = made.clone();
    Ok(Work {
        call: Box::new(move |_| {
            let mut group = founder.found()?;
            let list: Vec<&[u8]> = packages.iter().map(Vec::as_slice).collect();
            let welcome = founder.add(&mut group, &list)?;
            got.borrow_mut().push((welcome, authenticator(&group)));
            Ok(())
        }),
        // A key package is used up by the one welcome that is joined with it, so as many are looked at as there are clients.
        check: Box::new(move || {
            let made = made.borrow();
            let joined = made.iter().zip(&others).map(|((w, want), c)| c.join(w).is_ok_and(|g| &authenticator(&g) == want));
            let looked = made.len().min(others.len());
            count(joined) + if looked < made.len() { count(made[looked..].iter().map(|(w, _)| !w.is_empty())) } else { 0 }
        }),
    })
}

/// join: a welcome's bytes in, a group out. Each call has a client of its own, because its key package is deleted.
fn join(members: usize, calls: usize) -> Result<Work, Failure> {
    let others = clients(members - 1)?;
    let mut invited = Vec::new();
    let mut want = Vec::new();
    for _ in 0..calls {
        let (_, last, group, welcome) = invite(members, &others)?;
        want.push(authenticator(&group));
        invited.push((last, welcome));
    }
    let joined = Rc::new(RefCell::new(Vec::new()));
    let got = joined.clone();
    Ok(Work {
        call: Box::new(move |i| {
            let (client, welcome) = &invited[i];
            let group = client.join(welcome)?;
            got.borrow_mut().push(group);
            Ok(())
        }),
        check: Box::new(move || count(joined.borrow().iter().zip(&want).map(|(g, w)| &authenticator(g) == w))),
    })
}

fn send(first: bool, calls: usize) -> Result<Work, Failure> {
    let n = if first { calls } else { 1 };
    let mut pairs = (0..n).map(|_| pair(1, &[])).collect::<Result<Vec<_>, _>>()?;
    if !first {
        let p = &mut pairs[0];
        let opening = p.founder.seal(&mut p.sender)?;
        p.last.read(&mut p.receiver, &opening)?;
    }
    let pairs = Rc::new(RefCell::new(pairs));
    let sent = Rc::new(RefCell::new(Vec::new()));
    let (ours, got) = (pairs.clone(), sent.clone());
    Ok(Work {
        call: Box::new(move |i| {
            let p = &mut ours.borrow_mut()[i % n];
            got.borrow_mut().push(p.founder.seal(&mut p.sender)?);
            Ok(())
        }),
        check: Box::new(move || {
            let mut pairs = pairs.borrow_mut();
            let sent = sent.borrow();
            count(sent.iter().enumerate().map(|(i, m)| {
                let p = &mut pairs[i % n];
                p.last.read(&mut p.receiver, m).is_ok_and(|text| text == TEXT)
            }))
        }),
    })
}

fn ingest(calls: usize) -> Result<Work, Failure> {
    let mut p = pair(1, &[])?;
    let opening = p.founder.seal(&mut p.sender)?;
    p.last.read(&mut p.receiver, &opening)?;
    let messages = (0..calls).map(|_| p.founder.seal(&mut p.sender)).collect::<Result<Vec<_>, _>>()?;
    let texts = Rc::new(RefCell::new(Vec::new()));
    let got = texts.clone();
    Ok(Work {
        call: Box::new(move |i| {
            got.borrow_mut().push(p.last.read(&mut p.receiver, &messages[i])?);
            Ok(())
        }),
        check: Box::new(move || count(texts.borrow().iter().map(|t| t == TEXT))),
    })
}

/// ingest_commit: another member's update path without proposals, checked and merged; each is the next epoch's.
fn ingest_commit(members: usize, calls: usize) -> Result<Work, Failure> {
    let mut p = pair(members, &clients(members - 1)?)?;
    let mut commits = Vec::new();
    let mut want = Vec::new();
    for _ in 0..calls {
        let (commit, _, _) = p.sender.self_update(&p.founder.provider, &p.founder.signer, LeafNodeParameters::default())?.into_contents();
        p.sender.merge_pending_commit(&p.founder.provider)?;
        commits.push(commit.tls_serialize_detached()?);
        want.push(authenticator(&p.sender));
    }
    let reached = Rc::new(RefCell::new(Vec::new()));
    let got = reached.clone();
    Ok(Work {
        call: Box::new(move |i| {
            let ProcessedMessageContent::StagedCommitMessage(staged) = p.last.process(&mut p.receiver, &commits[i])? else {
                return Err("not a commit".into());
            };
            p.receiver.merge_staged_commit(&p.last.provider, *staged)?;
            got.borrow_mut().push(authenticator(&p.receiver));
            Ok(())
        }),
        check: Box::new(move || count(reached.borrow().iter().zip(&want).map(|(a, b)| a == b))),
    })
}
