//! OpenMLS clients for groups that they share with another engine: a question per line, {"op":…,"who":…}, an answer per line,
//! {…} or {"error":…}. Bytes are hex. What a question does to a client is in force at once: there is no delivery service here
//! that could put another commit first.
use openmls::prelude::tls_codec::{Deserialize as _, DeserializeBytes as _};
use openmls::prelude::*;
use openmls::schedule::psk::{ExternalPsk, PreSharedKeyId, Psk, ResumptionPsk, ResumptionPskUsage};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::{MemoryStorage, OpenMlsRustCrypto};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

type Failure = Box<dyn std::error::Error>;
type Done = Result<Answer, Failure>;

/// Bytes that are hex in JSON.
struct Hex(Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        base16ct::lower::decode_vec(&text).map(Hex).map_err(|e| serde::de::Error::custom(format!("hex: {e}")))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&base16ct::lower::encode_string(&self.0))
    }
}

#[derive(Deserialize)]
struct Question {
    who: String,
    #[serde(flatten)]
    op: Op,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Op {
    /// Makes a client and a key package of it; psks is of identifiers and keys.
    Client { suite: u16, #[serde(default)] psks: BTreeMap<String, Hex> },
    Create { group_id: Hex, #[serde(default)] senders: Vec<Outsider> },
    Join { welcome: Hex, tree: Option<Hex> },
    Commit { proposals: Option<Vec<What>>, #[serde(default)] publicly: bool, #[serde(default)] omit_tree: bool, #[serde(default)] path: bool },
    Propose { what: What, #[serde(default)] publicly: bool },
    /// Proposes from outside of a group: as one of its external senders, or, without a place among them, to be added.
    Offer { group_id: Hex, epoch: u64, sender: Option<u32>, what: Option<What> },
    Send { text: Hex },
    Process { message: Hex },
    Info { #[serde(default)] omit_tree: bool },
    External { info: Hex, tree: Option<Hex>, #[serde(default)] psks: Vec<Hex> },
    Tree,
    State,
    /// Goes on with what is in the client's storage.
    Reload,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum What {
    Add { key_package: Hex },
    Remove { leaf: u32 },
    Update,
    Psk { id: Hex },
    /// The resumption PSK of an epoch of this group.
    Resume { epoch: u64 },
    /// The list of external senders, and no other extension.
    Senders { senders: Vec<Outsider> },
}

#[derive(Deserialize)]
struct Outsider {
    name: String,
    key: Hex,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_package: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    welcome: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authenticator: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exported: Option<Hex>,
}

fn wire(message: &impl tls_codec::Serialize) -> Result<Hex, Failure> {
    Ok(Hex(message.tls_serialize_detached()?))
}

fn read(message: &Hex) -> Result<MlsMessageIn, Failure> {
    Ok(MlsMessageIn::tls_deserialize_exact(&message.0)?)
}

fn read_tree(tree: &Hex) -> Result<RatchetTreeIn, Failure> {
    Ok(RatchetTreeIn::tls_deserialize_exact_bytes(&tree.0)?)
}

fn basic(name: &str) -> Credential {
    BasicCredential::new(name.as_bytes().to_vec()).into()
}

fn external_senders(list: Vec<Outsider>) -> Result<Extensions<GroupContext>, Failure> {
    let list = list.into_iter().map(|o| ExternalSender::new(o.key.0.into(), basic(&o.name))).collect();
    Ok(Extensions::single(Extension::ExternalSenders(list))?)
}

/// How a group is used: handshake messages in the one framing or the other, windows like those of the other engine.
fn usage(publicly: bool) -> MlsGroupJoinConfig {
    MlsGroupJoinConfig::builder()
        .wire_format_policy(if publicly { MIXED_PLAINTEXT_WIRE_FORMAT_POLICY } else { MIXED_CIPHERTEXT_WIRE_FORMAT_POLICY })
        .use_ratchet_tree_extension(true)
        .sender_ratchet_configuration(SenderRatchetConfiguration::new(100, 1000))
        .max_past_epochs(3)
        .number_of_resumption_psks(16)
        .build()
}

/// A client that may be in a group.
struct Client {
    provider: OpenMlsRustCrypto,
    suite: Ciphersuite,
    signer: SignatureKeyPair,
    credential: CredentialWithKey,
    package: KeyPackage,
    group: Option<MlsGroup>,
}

impl Client {
    fn new(name: &str, suite: u16, psks: BTreeMap<String, Hex>) -> Result<Self, Failure> {
        let suite = Ciphersuite::try_from(suite)?;
        let provider = OpenMlsRustCrypto::default();
        let signer = SignatureKeyPair::new(suite.signature_algorithm())?;
        let credential = CredentialWithKey { credential: basic(name), signature_key: signer.to_public_vec().into() };
        let package = KeyPackage::builder()
            .leaf_node_capabilities(Capabilities::default().with_grease(provider.rand()))
            .build(suite, &provider, &signer, credential.clone())?
            .into_key_package();
        for (id, key) in psks {
            let id = base16ct::lower::decode_vec(&id).map_err(|e| format!("psks: {e}"))?;
            PreSharedKeyId::new(suite, provider.rand(), Psk::External(ExternalPsk::new(id)))?.store(&provider, &key.0)?;
        }
        Ok(Client { provider, suite, signer, credential, package, group: None })
    }

    fn made(&self) -> Done {
        let key_package = wire(&MlsMessageOut::from(self.package.clone()))?;
        Ok(Answer { key_package: Some(key_package), key: Some(Hex(self.signer.to_public_vec())), ..Answer::default() })
    }

    fn storage(&self) -> &MemoryStorage {
        self.provider.storage()
    }

    fn group(&mut self) -> Result<(&mut MlsGroup, &OpenMlsRustCrypto, &SignatureKeyPair), Failure> {
        let group = self.group.as_mut().ok_or("it is in no group")?;
        Ok((group, &self.provider, &self.signer))
    }

    /// Reads a key package as an application is told to: its lifetime is looked at as well.
    fn packaged(&self, bytes: &Hex) -> Result<KeyPackage, Failure> {
        let MlsMessageBodyIn::KeyPackage(k) = read(bytes)?.extract() else {
            return Err("not a key package".into());
        };
        let k = k.validate(self.provider.crypto(), ProtocolVersion::Mls10)?;
        if !k.life_time().has_acceptable_range() {
            return Err(format!("a key package's lifetime is too long: {:?}", k.life_time()).into());
        }
        Ok(k)
    }

    fn psk(&self, psk: Psk) -> Result<PreSharedKeyId, Failure> {
        Ok(PreSharedKeyId::new(self.suite, self.provider.rand(), psk)?)
    }

    fn resumption(&self, epoch: u64) -> Result<PreSharedKeyId, Failure> {
        let id = self.group.as_ref().ok_or("it is in no group")?.group_id().clone();
        self.psk(Psk::Resumption(ResumptionPsk::new(ResumptionPskUsage::Application, id, epoch.into())))
    }

    fn frame(&mut self, publicly: bool) -> Result<(), Failure> {
        let (group, provider, _) = self.group()?;
        Ok(group.set_configuration(provider.storage(), &usage(publicly))?)
    }

    fn create(&mut self, id: Hex, senders: Vec<Outsider>) -> Done {
        let capabilities = Capabilities::default().with_grease(self.provider.rand());
        let mut config = MlsGroupCreateConfig::builder().ciphersuite(self.suite).capabilities(capabilities);
        if !senders.is_empty() {
            config = config.with_group_context_extensions(external_senders(senders)?);
        }
        let id = GroupId::from_slice(&id.0);
        let mut group = MlsGroup::new_with_group_id(&self.provider, &self.signer, &config.build(), id, self.credential.clone())?;
        group.set_configuration(self.storage(), &usage(false))?;
        self.group = Some(group);
        Ok(Answer::default())
    }

    fn join(&mut self, welcome: Hex, tree: Option<Hex>) -> Done {
        let MlsMessageBodyIn::Welcome(welcome) = read(&welcome)?.extract() else {
            return Err("not a welcome".into());
        };
        let tree = tree.as_ref().map(read_tree).transpose()?;
        let staged = StagedWelcome::new_from_welcome(&self.provider, &usage(false), welcome, tree)?;
        self.group = Some(staged.into_group(&self.provider)?);
        Ok(Answer::default())
    }

    fn commit(&mut self, proposals: Vec<What>, publicly: bool, omit_tree: bool, path: bool) -> Done {
        let (mut adds, mut removals, mut others, mut context) = (Vec::new(), Vec::new(), Vec::new(), None);
        for what in proposals {
            match what {
                What::Add { key_package } => adds.push(self.packaged(&key_package)?),
                What::Remove { leaf } => removals.push(LeafNodeIndex::new(leaf)),
                What::Psk { id } => others.push(self.psk(Psk::External(ExternalPsk::new(id.0)))?),
                What::Resume { epoch } => others.push(self.resumption(epoch)?),
                What::Senders { senders } => context = Some(external_senders(senders)?),
                What::Update => return Err("a committer's update is its path".into()),
            }
        }
        self.frame(publicly)?;
        let (group, provider, signer) = self.group()?;
        let others = others.into_iter().map(|id| Proposal::PreSharedKey(Box::new(PreSharedKeyProposal::new(id))));
        let mut builder = group.commit_builder().propose_adds(adds).propose_removals(removals).add_proposals(others).force_self_update(path);
        if let Some(extensions) = context {
            builder = builder.propose_group_context_extensions(extensions)?;
        }
        let bundle = builder
            .load_psks(provider.storage())?
            .use_ratchet_tree_extension(!omit_tree)
            .build(provider.rand(), provider.crypto(), signer, |_| true)?
            .stage_commit(provider)?;
        group.merge_pending_commit(provider)?;
        let welcome = bundle.to_welcome_msg().as_ref().map(wire).transpose()?;
        Ok(Answer { commit: Some(wire(bundle.commit())?), welcome, ..Answer::default() })
    }

    fn propose(&mut self, what: What, publicly: bool) -> Done {
        self.frame(publicly)?;
        let message = match what {
            What::Add { key_package } => {
                let k = self.packaged(&key_package)?;
                let (group, provider, signer) = self.group()?;
                group.propose_add_member(provider, signer, &k)?.0
            }
            What::Remove { leaf } => {
                let (group, provider, signer) = self.group()?;
                group.propose_remove_member(provider, signer, LeafNodeIndex::new(leaf))?.0
            }
            What::Update => {
                let (group, provider, signer) = self.group()?;
                group.propose_self_update(provider, signer, LeafNodeParameters::default())?.0
            }
            What::Psk { id } => {
                let id = self.psk(Psk::External(ExternalPsk::new(id.0)))?;
                let (group, provider, signer) = self.group()?;
                group.propose_pre_shared_key(provider, signer, id)?.0
            }
            What::Resume { epoch } => {
                let id = self.resumption(epoch)?;
                let (group, provider, signer) = self.group()?;
                group.propose_pre_shared_key(provider, signer, id)?.0
            }
            What::Senders { senders } => {
                let (group, provider, signer) = self.group()?;
                group.propose_group_context_extensions(provider, external_senders(senders)?, signer)?.0
            }
        };
        Ok(Answer { message: Some(wire(&message)?), ..Answer::default() })
    }

    fn offer(&self, id: Hex, epoch: u64, sender: Option<u32>, what: Option<What>) -> Done {
        let (id, epoch) = (GroupId::from_slice(&id.0), epoch.into());
        let message = match (sender, what) {
            (None, None) => JoinProposal::new::<MemoryStorage>(self.package.clone(), id, epoch, &self.signer)?,
            (Some(n), Some(What::Add { key_package })) => {
                ExternalProposal::new_add::<OpenMlsRustCrypto>(self.packaged(&key_package)?, id, epoch, &self.signer, SenderExtensionIndex::new(n))?
            }
            (Some(n), Some(What::Remove { leaf })) => {
                ExternalProposal::new_remove::<OpenMlsRustCrypto>(LeafNodeIndex::new(leaf), id, epoch, &self.signer, SenderExtensionIndex::new(n))?
            }
            _ => return Err("an outsider proposes itself, or an add or a removal as an external sender".into()),
        };
        Ok(Answer { message: Some(wire(&message)?), ..Answer::default() })
    }

    fn send(&mut self, text: Hex) -> Done {
        let (group, provider, signer) = self.group()?;
        Ok(Answer { message: Some(wire(&group.create_message(provider, signer, &text.0)?)?), ..Answer::default() })
    }

    fn process(&mut self, message: Hex) -> Done {
        let message = read(&message)?.try_into_protocol_message()?;
        let (group, provider, _) = self.group()?;
        let mut text = None;
        let kind = match group.process_message(provider, message)?.into_content() {
            ProcessedMessageContent::ApplicationMessage(m) => {
                text = Some(Hex(m.into_bytes()));
                "application"
            }
            ProcessedMessageContent::ProposalMessage(p) | ProcessedMessageContent::ExternalJoinProposalMessage(p) => {
                group.store_pending_proposal(provider.storage(), *p)?;
                "proposal"
            }
            ProcessedMessageContent::StagedCommitMessage(staged) => {
                let removed = staged.self_removed();
                group.merge_staged_commit(provider, *staged)?;
                if removed {
                    "removed"
                } else {
                    "commit"
                }
            }
            ProcessedMessageContent::OwnPendingCommit | ProcessedMessageContent::OwnPrivateMessage => "own",
        };
        Ok(Answer { kind: Some(kind), text, ..Answer::default() })
    }

    fn info(&mut self, omit_tree: bool) -> Done {
        let (group, provider, signer) = self.group()?;
        let info = group.export_group_info(provider.crypto(), signer, !omit_tree)?;
        Ok(Answer { info: Some(wire(&info)?), ..Answer::default() })
    }

    fn external(&mut self, info: Hex, tree: Option<Hex>, psks: Vec<Hex>) -> Done {
        let MlsMessageBodyIn::GroupInfo(info) = read(&info)?.extract() else {
            return Err("not a group info".into());
        };
        let mut builder = MlsGroup::external_commit_builder().with_config(usage(false));
        if let Some(tree) = &tree {
            builder = builder.with_ratchet_tree(read_tree(tree)?);
        }
        let psks = psks.into_iter().map(|id| Ok(PreSharedKeyProposal::new(self.psk(Psk::External(ExternalPsk::new(id.0)))?)));
        let psks = psks.collect::<Result<Vec<_>, Failure>>()?;
        if let Some(mut old) = self.group.take() {
            old.delete(self.storage())?; // which holds one group of an identifier
        }
        let (group, bundle) = builder
            .build_group(&self.provider, info, self.credential.clone())?
            .add_psk_proposals(psks)
            .load_psks(self.storage())?
            .build(self.provider.rand(), self.provider.crypto(), &self.signer, |_| true)?
            .finalize(&self.provider)?;
        self.group = Some(group);
        Ok(Answer { commit: Some(wire(bundle.commit())?), ..Answer::default() })
    }

    fn reload(&mut self) -> Done {
        let old = self.group.take().ok_or("it is in no group")?;
        self.group = Some(MlsGroup::load(self.storage(), old.group_id())?.ok_or("its storage has not the group")?);
        Ok(Answer::default())
    }

    fn tree(&mut self) -> Done {
        let (group, _, _) = self.group()?;
        Ok(Answer { tree: Some(wire(&group.export_ratchet_tree())?), ..Answer::default() })
    }

    fn state(&mut self) -> Done {
        let (group, provider, _) = self.group()?;
        Ok(Answer {
            epoch: Some(group.epoch().as_u64()),
            authenticator: Some(Hex(group.epoch_authenticator().as_slice().to_vec())),
            exported: Some(Hex(group.export_secret(provider.crypto(), "interop", b"context", 40)?)),
            ..Answer::default()
        })
    }
}

fn answer(clients: &mut BTreeMap<String, Client>, line: &str) -> Done {
    let Question { who, op } = serde_json::from_str(line)?;
    if let Op::Client { suite, psks } = op {
        let client = Client::new(&who, suite, psks)?;
        let made = client.made()?;
        clients.insert(who, client);
        return Ok(made);
    }
    let c = clients.get_mut(&who).ok_or_else(|| format!("there is no client {who}"))?;
    match op {
        Op::Client { .. } => Err("it is made already".into()),
        Op::Create { group_id, senders } => c.create(group_id, senders),
        Op::Join { welcome, tree } => c.join(welcome, tree),
        Op::Commit { proposals, publicly, omit_tree, path } => c.commit(proposals.unwrap_or_default(), publicly, omit_tree, path),
        Op::Propose { what, publicly } => c.propose(what, publicly),
        Op::Offer { group_id, epoch, sender, what } => c.offer(group_id, epoch, sender, what),
        Op::Send { text } => c.send(text),
        Op::Process { message } => c.process(message),
        Op::Info { omit_tree } => c.info(omit_tree),
        Op::External { info, tree, psks } => c.external(info, tree, psks),
        Op::Tree => c.tree(),
        Op::State => c.state(),
        Op::Reload => c.reload(),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let mut clients = BTreeMap::new();
    for line in io::stdin().lock().lines() {
        let answer = answer(&mut clients, &line?).unwrap_or_else(|e| Answer { error: Some(e.to_string()), ..Answer::default() });
        serde_json::to_writer(&mut out, &answer)?;
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}
