package mls

// The key schedule, RFC 9420 §8.

// secrets are what an epoch's members share. The epoch secret itself is never kept.
type secrets struct {
	senderData    []byte
	encryption    []byte // given to the secret tree and dropped
	exporter      []byte
	external      []byte
	confirm       []byte
	membership    []byte
	resumption    []byte
	authenticator []byte
	init          []byte
}

// joinerSecret starts an epoch from the one before; context is the new epoch's.
func (s *suite) joinerSecret(init, commit, context []byte) []byte {
	return s.expandWithLabel(s.extract(init, commit), "joiner", context, s.nh)
}

// memberSecret mixes the PSKs into the joiner secret.
func (s *suite) memberSecret(joiner, psk []byte) []byte { return s.extract(joiner, psk) }

func (s *suite) epochSecret(member, context []byte) []byte {
	return s.expandWithLabel(member, "epoch", context, s.nh)
}

// welcomeKey derives the key and nonce of a welcome's encrypted_group_info (§12.4.3.1).
func (s *suite) welcomeKey(member []byte) (key, nonce []byte) {
	secret := s.deriveSecret(member, "welcome")
	return s.expandWithLabel(secret, "key", nil, s.nk), s.expandWithLabel(secret, "nonce", nil, nonceSize)
}

func (s *suite) secretsOf(epoch []byte) secrets {
	b := make([]byte, 9*s.nh) // one piece of memory for all
	derive := func(label string) []byte {
		out := b[:s.nh:s.nh]
		b = b[s.nh:]
		s.expandLabel(out, epoch, label, nil)
		return out
	}
	return secrets{
		senderData:    derive("sender data"),
		encryption:    derive("encryption"),
		exporter:      derive("exporter"),
		external:      derive("external"),
		confirm:       derive("confirm"),
		membership:    derive("membership"),
		resumption:    derive("resumption"),
		authenticator: derive("authentication"),
		init:          derive("init"),
	}
}

// confirmedHash and interimHash are the transcript hashes of §8.2.
func (s *suite) confirmedHash(interim []byte, a *authenticated) []byte {
	body := a.content.body
	if body == nil {
		body = a.content.appendBody(nil)
	}
	buf := make([]byte, 0, 512)
	buf = a.content.appendHead(appendU16(append(buf, interim...), uint16(a.wire)))
	h := s.newHash()
	h.Write(buf)
	h.Write(body)
	h.Write(appendVector(buf[:0], a.auth.signature))
	return h.Sum(nil)
}

func (s *suite) interimHash(confirmed, tag []byte) []byte {
	return s.digest(appendVector(append(make([]byte, 0, 2*maxHash+2), confirmed...), tag))
}

// exportSecret is MLS-Exporter of §8.5.
func (s *suite) exportSecret(exporter []byte, label string, context []byte, n int) []byte {
	return s.expandWithLabel(s.deriveSecret(exporter, label), "exported", s.digest(context), n)
}

// externalLabel is what an external commit's init secret is exported under (§8.3).
const externalLabel = "MLS 1.0 external init secret"

// externalInit makes an init secret that the members can derive too.
func (s *suite) externalInit(to publicKey) (kemOutput, init []byte, err error) {
	var c hpkeContext
	info := s.hpkeInfo(nil)
	enc, err := s.setupSender(&c, to, &info, true)
	if err != nil {
		return nil, nil, err
	}
	return enc, s.export(&c, externalLabel), nil
}

func (s *suite) externalInitOf(external, kemOutput []byte) ([]byte, error) {
	key, err := s.deriveKeyPair(external)
	if err != nil {
		return nil, err
	}
	var c hpkeContext
	info := s.hpkeInfo(nil)
	if err := s.setupReceiver(&c, key, kemOutput, &info, true); err != nil {
		return nil, err
	}
	return s.export(&c, externalLabel), nil
}
