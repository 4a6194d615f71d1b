package mls

// The structures that bring a new member in, RFC 9420 §12.4.3.

// groupContext is GroupContext (§8.1).
type groupContext struct {
	suite      Suite
	groupID    []byte
	epoch      uint64
	treeHash   []byte
	transcript []byte // confirmed_transcript_hash
	extensions []Extension
	version    uint16
}

func (c *groupContext) append(dst []byte) []byte {
	dst = appendU16(appendU16(dst, c.version), uint16(c.suite))
	dst = appendU64(appendVector(dst, c.groupID), c.epoch)
	dst = appendVector(appendVector(dst, c.treeHash), c.transcript)
	return appendExtensions(dst, c.extensions)
}

func readGroupContext(r *reader) groupContext {
	c := groupContext{version: r.u16(), suite: Suite(r.u16()), groupID: r.vector(), epoch: r.u64()}
	c.treeHash, c.transcript, c.extensions = r.vector(), r.vector(), readExtensions(r)
	return c
}

// groupInfo is GroupInfo.
type groupInfo struct {
	context      groupContext
	extensions   []Extension
	confirmation []byte
	signer       uint32
	signature    []byte
}

func (g *groupInfo) appendTBS(dst []byte) []byte {
	dst = appendExtensions(g.context.append(dst), g.extensions)
	return appendU32(appendVector(dst, g.confirmation), g.signer)
}

func (g *groupInfo) append(dst []byte) []byte { return appendVector(g.appendTBS(dst), g.signature) }

func readGroupInfo(r *reader) *groupInfo {
	return &groupInfo{context: readGroupContext(r), extensions: readExtensions(r), confirmation: r.vector(), signer: r.u32(), signature: r.vector()}
}

// groupSecrets is GroupSecrets.
type groupSecrets struct {
	joiner  []byte
	path    []byte // path_secret
	hasPath bool
	psks    []*PSKID
}

func (g *groupSecrets) append(dst []byte) []byte {
	dst = appendOptional(appendVector(dst, g.joiner), g.hasPath)
	if g.hasPath {
		dst = appendVector(dst, g.path)
	}
	start := len(dst)
	for _, p := range g.psks {
		dst = p.append(dst)
	}
	return closeVector(dst, start)
}

func readGroupSecrets(r *reader) *groupSecrets {
	g := &groupSecrets{joiner: r.vector()}
	if g.hasPath = r.optional(); g.hasPath {
		g.path = r.vector()
	}
	g.psks = readList(r, readPSKID)
	return g
}

// encryptedSecrets is EncryptedGroupSecrets.
type encryptedSecrets struct {
	ref     []byte // of the new member's key package
	secrets Ciphertext
}

// welcome is Welcome.
type welcome struct {
	suite   Suite
	secrets []encryptedSecrets
	info    []byte // encrypted_group_info
}

func (w *welcome) append(dst []byte) []byte {
	dst = appendU16(dst, uint16(w.suite))
	start := len(dst)
	for _, e := range w.secrets {
		dst = e.secrets.append(appendVector(dst, e.ref))
	}
	return appendVector(closeVector(dst, start), w.info)
}

func readWelcome(r *reader) *welcome {
	return &welcome{
		suite:   Suite(r.u16()),
		secrets: readList(r, func(r *reader) encryptedSecrets { return encryptedSecrets{r.vector(), readCiphertext(r)} }),
		info:    r.vector(),
	}
}
