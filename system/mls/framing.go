package mls

// Framing of handshake and application messages, RFC 9420 §6.

type wireFormat uint16

const (
	wirePublic     wireFormat = 1
	wirePrivate    wireFormat = 2
	wireWelcome    wireFormat = 3
	wireGroupInfo  wireFormat = 4
	wireKeyPackage wireFormat = 5
)

// A ContentType says what a message carries.
type ContentType uint8

// The content types.
const (
	ContentApplication ContentType = 1
	ContentProposal    ContentType = 2
	ContentCommit      ContentType = 3
)

// A SenderType says what a sender is to the group.
type SenderType uint8

// The sender types.
const (
	SenderMember            SenderType = 1
	SenderExternal          SenderType = 2
	SenderNewMemberProposal SenderType = 3
	SenderNewMemberCommit   SenderType = 4
)

// A Sender is who sent a message. Index is a leaf index, or a place among the external senders.
type Sender struct {
	Type  SenderType
	Index uint32
}

func (s Sender) append(dst []byte) []byte {
	dst = append(dst, byte(s.Type))
	if s.Type == SenderMember || s.Type == SenderExternal {
		dst = appendU32(dst, s.Index)
	}
	return dst
}

func readSender(r *reader) Sender {
	s := Sender{Type: SenderType(r.u8())}
	switch s.Type {
	case SenderMember, SenderExternal:
		s.Index = r.u32()
	case SenderNewMemberProposal, SenderNewMemberCommit:
	default:
		r.fail("a sender of an unknown type")
	}
	return s
}

// framedContent is FramedContent.
type framedContent struct {
	groupID     []byte
	epoch       uint64
	sender      Sender
	data        []byte // authenticated_data
	kind        ContentType
	application []byte
	proposal    *Proposal
	commit      *Commit
	body        []byte // the encoding of what it carries, where that is known: a commit of a thousand ciphertexts is encoded once
}

func (c *framedContent) appendBody(dst []byte) []byte {
	if c.body != nil {
		return append(dst, c.body...)
	}
	switch c.kind {
	case ContentApplication:
		return appendVector(dst, c.application)
	case ContentProposal:
		return c.proposal.append(dst)
	}
	return c.commit.append(dst)
}

func (c *framedContent) readBody(r *reader) {
	from := r.data
	switch c.kind {
	case ContentApplication:
		c.application = r.vector()
	case ContentProposal:
		c.proposal = readProposal(r)
	case ContentCommit:
		c.commit = readCommit(r)
	default:
		r.fail("content of an unknown type")
	}
	n := len(from) - len(r.data)
	c.body = from[:n:n]
}

// appendHead appends all that stands before the body.
func (c *framedContent) appendHead(dst []byte) []byte {
	dst = appendU64(appendVector(dst, c.groupID), c.epoch)
	return append(appendVector(c.sender.append(dst), c.data), byte(c.kind))
}

func (c *framedContent) append(dst []byte) []byte { return c.appendBody(c.appendHead(dst)) }

func readFramedContent(r *reader) *framedContent {
	c := &framedContent{groupID: r.vector(), epoch: r.u64(), sender: readSender(r), data: r.vector(), kind: ContentType(r.u8())}
	c.readBody(r)
	return c
}

// authData is FramedContentAuthData.
type authData struct {
	signature    []byte
	confirmation []byte // of a commit
}

func (a *authData) append(dst []byte, kind ContentType) []byte {
	dst = appendVector(dst, a.signature)
	if kind == ContentCommit {
		dst = appendVector(dst, a.confirmation)
	}
	return dst
}

func readAuthData(r *reader, kind ContentType) authData {
	a := authData{signature: r.vector()}
	if kind == ContentCommit {
		a.confirmation = r.vector()
	}
	return a
}

// authenticated is AuthenticatedContent.
type authenticated struct {
	wire    wireFormat
	content *framedContent
	auth    authData
}

func (a *authenticated) append(dst []byte) []byte {
	dst = a.content.append(appendU16(dst, uint16(a.wire)))
	return a.auth.append(dst, a.content.kind)
}

func readAuthenticated(r *reader) *authenticated {
	a := &authenticated{wire: wireFormat(r.u16()), content: readFramedContent(r)}
	a.auth = readAuthData(r, a.content.kind)
	return a
}

// appendTBS appends FramedContentTBS; context is the encoded GroupContext.
func (a *authenticated) appendTBS(dst, context []byte) []byte {
	dst = appendU16(appendU16(dst, versionMLS10), uint16(a.wire))
	return append(a.content.append(dst), a.signedContext(context)...)
}

// signedContext is the part of a group context that is signed: all of it by a member and by one who joins with a commit.
func (a *authenticated) signedContext(context []byte) []byte {
	if t := a.content.sender.Type; t == SenderMember || t == SenderNewMemberCommit {
		return context
	}
	return nil
}

// ref is the ProposalRef of §5.2.
func (a *authenticated) ref(s *suite) []byte {
	return s.refHash("MLS 1.0 Proposal Reference", a.append(nil))
}

// publicMessage is PublicMessage.
type publicMessage struct {
	content    *framedContent
	auth       authData
	membership []byte // tag, of a member's message
}

func (m *publicMessage) append(dst []byte) []byte {
	dst = m.auth.append(m.content.append(dst), m.content.kind)
	if m.content.sender.Type == SenderMember {
		dst = appendVector(dst, m.membership)
	}
	return dst
}

func readPublicMessage(r *reader) *publicMessage {
	m := &publicMessage{content: readFramedContent(r)}
	m.auth = readAuthData(r, m.content.kind)
	if m.content.sender.Type == SenderMember {
		m.membership = r.vector()
	}
	return m
}

// privateMessage is PrivateMessage.
type privateMessage struct {
	groupID    []byte
	epoch      uint64
	kind       ContentType
	data       []byte // authenticated_data
	senderData []byte
	ciphertext []byte
}

func (m *privateMessage) append(dst []byte) []byte {
	dst = append(appendU64(appendVector(dst, m.groupID), m.epoch), byte(m.kind))
	return appendVector(appendVector(appendVector(dst, m.data), m.senderData), m.ciphertext)
}

func (m *privateMessage) read(r *reader) {
	m.groupID, m.epoch, m.kind = r.vector(), r.u64(), ContentType(r.u8())
	m.data, m.senderData, m.ciphertext = r.vector(), r.vector(), r.vector()
	if r.err == nil && (m.kind < ContentApplication || m.kind > ContentCommit) {
		r.fail("content of an unknown type")
	}
}

// message is MLSMessage: the field that its wire format names is set.
type message struct {
	wire       wireFormat
	public     *publicMessage
	private    *privateMessage
	welcome    *welcome
	groupInfo  *groupInfo
	keyPackage *KeyPackage
}

func (m *message) append(dst []byte) []byte {
	dst = appendU16(appendU16(dst, versionMLS10), uint16(m.wire))
	switch m.wire {
	case wirePublic:
		return m.public.append(dst)
	case wirePrivate:
		return m.private.append(dst)
	case wireWelcome:
		return m.welcome.append(dst)
	case wireGroupInfo:
		return m.groupInfo.append(dst)
	}
	return m.keyPackage.append(dst)
}

// parseMessage decodes an MLSMessage. What it returns aliases data.
func parseMessage(data []byte) (*message, error) {
	if err := bounded(data); err != nil {
		return nil, err
	}
	r := newReader(data)
	if version := r.u16(); r.err == nil && version != versionMLS10 {
		return nil, refuse(ErrVersion, "a message of version %d", version)
	}
	m := &message{wire: wireFormat(r.u16())}
	switch m.wire {
	case wirePublic:
		m.public = readPublicMessage(&r)
	case wirePrivate:
		m.private = new(privateMessage)
		m.private.read(&r)
	case wireWelcome:
		m.welcome = readWelcome(&r)
	case wireGroupInfo:
		m.groupInfo = readGroupInfo(&r)
	case wireKeyPackage:
		m.keyPackage = readKeyPackage(&r)
	default:
		r.fail("an unknown wire format")
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if m.keyPackage != nil && m.keyPackage.version != versionMLS10 {
		return nil, refuse(ErrVersion, "a key package of version %d in a message of version 1", m.keyPackage.version)
	}
	return m, nil
}
