package mls

import (
	"bytes"
	"slices"
)

// Joining by a welcome, RFC 9420 §12.4.3.1.

// JoinOptions are what a joiner knows beside the welcome.
type JoinOptions struct {
	Tree   []byte                    // the ratchet tree, when the welcome does not carry it
	Member func(groupID []byte) bool // are we in this group already? nil for no
	From   *Group                    // the group that this one was reinitialised or branched from
}

// Join makes a group out of a welcome for one of our key packages (§12.4.3.1).
func Join(config Config, data []byte, b *Bundle, o JoinOptions) (*Group, error) {
	s, err := config.suite()
	if err != nil {
		return nil, err
	}
	m, err := parseMessage(bytes.Clone(data))
	if err != nil {
		return nil, err
	}
	if m.welcome == nil {
		return nil, refuse(ErrWelcome, "wire format %d where a welcome is expected", m.wire)
	}
	if m.welcome.suite != s.id || b.Package.Suite != s.id {
		return nil, refuseFor(ErrWelcome, ErrSuite, "it is for ciphersuite %d, the key package for %d, the identity for %d", m.welcome.suite, b.Package.Suite, s.id)
	}
	j := &joining{s: s, config: &config, b: b, o: &o}
	if err := j.openSecrets(m.welcome); err != nil {
		return nil, err
	}
	if err := j.openInfo(m.welcome); err != nil {
		return nil, err
	}
	c := config.checker()
	t, err := j.info.checkedTree(c, o.Tree)
	if err != nil {
		return nil, err
	}
	e, err := j.enter(t)
	if err != nil {
		return nil, err
	}
	if err := j.checkOrigin(e); err != nil {
		return nil, err
	}
	return newGroup(config, s, e)
}

// joining is a welcome that is being processed.
type joining struct {
	s       *suite
	config  *Config
	b       *Bundle
	o       *JoinOptions
	secrets *groupSecrets
	special *PSKID // the resumption PSK of a reinitialised or branched group
	member  []byte
	info    *groupInfo
}

// openSecrets finds and decrypts what is meant for our key package.
func (j *joining) openSecrets(w *welcome) error {
	ref := j.b.Package.ref(j.s)
	at := slices.IndexFunc(w.secrets, func(e encryptedSecrets) bool { return bytes.Equal(e.ref, ref) })
	if at < 0 {
		return refuse(ErrWelcome, "it is not for this key package")
	}
	plain, err := j.s.open(j.b.init, encryptInfo("Welcome", w.info), w.secrets[at].secrets)
	if err != nil {
		return refuseFor(ErrWelcome, err, "the group secrets")
	}
	if j.secrets, err = decode(plain, readGroupSecrets); err != nil {
		return refuseFor(ErrWelcome, err, "the group secrets")
	}
	if len(j.secrets.joiner) != j.s.nh {
		return refuse(ErrWelcome, "a joiner secret of %d bytes", len(j.secrets.joiner))
	}
	for i, id := range j.secrets.psks {
		if len(id.Nonce) != j.s.nh {
			return refuse(ErrPSK, "a nonce of %d bytes", len(id.Nonce))
		}
		if slices.ContainsFunc(j.secrets.psks[:i], id.same) {
			return refuseFor(ErrPSK, ErrDuplicate, "one ID twice in a welcome")
		}
		if id.Resumption && id.Usage != ForApplication {
			if j.special != nil {
				return refuse(ErrPSK, "two resumption PSKs for a new group")
			}
			j.special = id
		}
	}
	return nil
}

// psk finds a key, in the old group first.
func (j *joining) psk(id *PSKID) ([]byte, error) {
	if j.o.From != nil && id.Resumption {
		return j.o.From.psk(id)
	}
	return j.config.psk(id)
}

// openInfo decrypts the group info.
func (j *joining) openInfo(w *welcome) error {
	psk, err := pskSecret(j.s, j.secrets.psks, j.psk)
	if err != nil {
		return err
	}
	j.member = j.s.memberSecret(j.secrets.joiner, psk)
	key, nonce := j.s.welcomeKey(j.member)
	aead, err := j.s.aead(key)
	if err != nil {
		return err
	}
	plain, err := aead.Open(nil, nonce, w.info, nil)
	if err != nil {
		return refuseFor(ErrWelcome, ErrDecrypt, "the group info")
	}
	if j.info, err = decode(plain, readGroupInfo); err != nil {
		return refuseFor(ErrWelcome, err, "the group info")
	}
	if j.info.context.version != versionMLS10 || j.info.context.suite != j.s.id {
		return refuseFor(ErrGroupInfo, ErrSuite, "version %d, ciphersuite %d", j.info.context.version, j.info.context.suite)
	}
	if j.o.Member != nil && j.o.Member(j.info.context.groupID) {
		return refuse(ErrWelcome, "we are in group %x already", j.info.context.groupID)
	}
	return nil
}

// checkedTree finds the tree of a group info and checks it and the info's signature.
func (g *groupInfo) checkedTree(c *checker, given []byte) (*tree, error) {
	data, inline := findExtension(g.extensions, RatchetTree)
	if !inline {
		if given == nil {
			return nil, refuse(ErrGroupInfo, "it has no ratchet tree, and none was given")
		}
		data = bytes.Clone(given)
	}
	t, err := parseTree(c.s, data)
	if err != nil {
		return nil, refuseFor(ErrTree, err, "decode")
	}
	from := t.leaf(g.signer)
	if from == nil {
		return nil, refuse(ErrGroupInfo, "its signer, leaf %d, is no member", g.signer)
	}
	c.docket.collect(c.s)
	err = c.docket.check(c.s, from.SignatureKey, "GroupInfoTBS", g.appendTBS(make([]byte, 0, len(data)+512)), g.signature, func(err error) error {
		if err != nil {
			return refuseFor(ErrGroupInfo, err, "its signature")
		}
		return nil
	})
	if err == nil {
		err = c.tree(t, &g.context)
	}
	return t, err
}

// enter builds the epoch that the welcome leads to.
func (j *joining) enter(t *tree) (*epoch, error) {
	self, ok := t.find(j.b.Package.Leaf)
	if !ok {
		return nil, refuse(ErrWelcome, "our key package's leaf is not in the tree")
	}
	e := &epoch{context: j.info.context, tree: t, self: self, keys: privateKeys{2 * self: j.b.leaf}}
	if j.secrets.hasPath {
		if j.info.signer == self {
			return nil, refuse(ErrWelcome, "it is signed by ourselves")
		}
		root := t.root()
		var nodes []uint32
		x := ancestorOf(2*self, 2*j.info.signer)
		if t.node(x).blank() {
			return nil, refuse(ErrPath, "a path secret for node %d, which is blank", x)
		}
		for ; ; x = parentOf(x) {
			if !t.node(x).blank() {
				nodes = append(nodes, x)
			}
			if x == root {
				break
			}
		}
		above, _, err := t.derivePath(nodes, j.secrets.path)
		if err != nil {
			return nil, err
		}
		for x, k := range above {
			e.keys[x] = k
		}
	}
	e.encoded = e.context.append(make([]byte, 0, 256))
	e.begin(j.s.epochSecret(j.member, e.encoded), j.config.window())
	e.confirm()
	if !equal(e.confirmation, j.info.confirmation) {
		return nil, refuseFor(ErrMAC, ErrConfirmation, "of the welcome to epoch %d", e.context.epoch)
	}
	clear(j.secrets.joiner)
	clear(j.member)
	return e, nil
}

// checkOrigin checks a group that follows another (§11.2, §11.3).
func (j *joining) checkOrigin(e *epoch) error {
	if j.special == nil {
		return nil
	}
	old := j.o.From
	switch {
	case e.context.epoch != 1:
		return refuse(ErrWelcome, "a new group in epoch %d", e.context.epoch)
	case old == nil || !bytes.Equal(old.epoch.context.groupID, j.special.GroupID):
		return refuse(ErrWelcome, "it follows group %x, which JoinOptions.From is not", j.special.GroupID)
	case j.special.Usage == ForBranch:
		if e.context.suite != old.s.id || e.context.version != old.epoch.context.version {
			return refuse(ErrWelcome, "a branch with another version or ciphersuite")
		}
		return coverMembers(e.tree, old.epoch.tree, "the branch", "the group")
	}
	r := old.reinit
	if r == nil || old.Epoch() != j.special.Epoch {
		return refuse(ErrWelcome, "the last commit of group %x was no ReInit", j.special.GroupID)
	}
	c := &e.context
	if !bytes.Equal(c.groupID, r.GroupID) || c.version != r.Version || c.suite != r.Suite || !equalExtensions(c.extensions, r.Extensions) {
		return refuse(ErrWelcome, "it is not the group that the ReInit described")
	}
	return coverMembers(old.epoch.tree, e.tree, "the old group", "the new one")
}

// coverMembers checks that everyone in one tree is in another, by credential.
func coverMembers(part, whole *tree, partName, wholeName string) error {
	have := make(map[string]bool)
	for _, l := range whole.leaves {
		have[string(l.Credential.append(nil))] = true
	}
	for i, l := range part.leaves {
		if !have[string(l.Credential.append(nil))] {
			return refuse(ErrWelcome, "leaf %d of %s is not in %s", i, partName, wholeName)
		}
	}
	return nil
}
