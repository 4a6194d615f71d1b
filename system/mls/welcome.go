package mls

import "slices"

// welcome makes the Welcome for all that a commit adds (§12.4.3.1).
func (d *draft) welcome(next *epoch, joiner, member []byte) ([]byte, error) {
	info, err := next.groupInfo(d.config, !d.o.OmitTree, false)
	if err != nil {
		return nil, err
	}
	key, nonce := d.s.welcomeKey(member)
	aead, err := d.s.aead(key)
	if err != nil {
		return nil, err
	}
	w := &welcome{suite: d.s.id, secrets: make([]encryptedSecrets, len(d.ch.added))}
	plain := info.append(make([]byte, 0, 4096))
	w.info = aead.Seal(make([]byte, 0, len(plain)+aead.Overhead()), nonce, plain, nil)
	sealInfo := d.s.hpkeInfo(encryptInfo("Welcome", w.info))
	if err := d.sealing.finish(); err != nil {
		return nil, err
	}
	if err := d.sealSecrets(w.secrets, &groupSecrets{joiner: joiner, psks: d.ch.psks, hasPath: d.path != nil}, &sealInfo); err != nil {
		return nil, err
	}
	d.config.forged("welcome", w)
	return (&message{wire: wireWelcome, welcome: w}).append(nil), nil
}

// sealSecrets encrypts the group secrets to all that are added.
func (d *draft) sealSecrets(out []encryptedSecrets, secrets *groupSecrets, info *hpkeInfo) error {
	var plain, packed []byte
	for i, leaf := range d.ch.added {
		if d.path != nil {
			above := ancestorOf(2*d.self, 2*leaf)
			at := slices.IndexFunc(d.path.steps, func(s step) bool { return s.node == above })
			secrets.path = d.path.secrets[at]
		}
		d.config.forged("secrets", secrets)
		plain = secrets.append(plain[:0])
		ct, err := d.s.sealTo(&d.invited[i], info, plain)
		if err != nil {
			return err
		}
		packed = d.ch.packages[i].append(packed[:0])
		out[i] = encryptedSecrets{ref: d.s.refHash(packageRef, packed), secrets: ct}
	}
	clear(plain)
	return nil
}

// groupInfo describes an epoch to those outside it, signed.
func (e *epoch) groupInfo(c *Config, withTree, withKey bool) (*groupInfo, error) {
	s, t := e.tree.s, e.tree
	g := &groupInfo{context: e.context, confirmation: e.confirmation, signer: e.self}
	c.forged("tree", &t)
	if t != e.tree {
		g.context.treeHash = t.hash()
	}
	if withTree {
		g.extensions = append(g.extensions, Extension{RatchetTree, t.append(nil)})
	}
	if withKey {
		k, err := s.deriveKeyPair(e.secrets.external)
		if err != nil {
			return nil, err
		}
		g.extensions = append(g.extensions, Extension{ExternalPub, appendVector(nil, k.public)})
	}
	c.forged("info", g)
	var err error
	g.signature, err = s.sign(c.Identity.signer, "GroupInfoTBS", g.appendTBS(make([]byte, 0, 1024)))
	return g, err
}

// GroupInfo returns an MLSMessage with which others can join by an external commit (§12.4.3.2).
func (g *Group) GroupInfo(withTree bool) ([]byte, error) {
	if err := g.Active(); err != nil {
		return nil, err
	}
	info, err := g.epoch.groupInfo(&g.config, withTree, true)
	if err != nil {
		return nil, err
	}
	return (&message{wire: wireGroupInfo, groupInfo: info}).append(nil), nil
}
