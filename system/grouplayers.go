package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"toll/system/boltstore"
	"toll/system/mls"
	"toll/wire/envelope"
)

// The layers of the benchmark group: the engine in memory; with every group in a store on a disk; with every message in an
// envelope of the house, as a transport would carry it.
const (
	layerEngine   = "engine"
	layerStore    = "engine+store"
	layerEnvelope = "engine+envelope"
)

// A groupLayer is what a case has around the engine.
type groupLayer struct {
	name string
	file *boltstore.File
	n    uint64
}

func openLayer(name, dir string) (*groupLayer, error) {
	l := &groupLayer{name: name}
	switch name {
	case "", layerEngine, layerEnvelope:
		return l, nil
	case layerStore:
		if dir == "" {
			return nil, errors.New("the contender's input: layer engine+store needs dir, a folder for the store")
		}
		var err error
		l.file, err = boltstore.Open(filepath.Join(dir, fmt.Sprintf("groups-%d", time.Now().UnixNano())))
		return l, err
	}
	return nil, fmt.Errorf("the contender's input: layer %q is none of %s, %s and %s", name, layerEngine, layerStore, layerEnvelope)
}

// keep puts a group into the store, if there is one.
func (l *groupLayer) keep(groups ...*mls.Group) error {
	if l.file == nil {
		return nil
	}
	for _, g := range groups {
		l.n++
		if err := g.Persist(l.file.Group(binary.BigEndian.AppendUint64(nil, l.n)), mls.StoreOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// pack puts a message into an envelope, if there is one.
func (l *groupLayer) pack(message []byte) ([]byte, error) {
	if l.name != layerEnvelope {
		return message, nil
	}
	m := &envelope.Message{Type: "mls", Sender: "founder", Recipient: "group", Payload: map[string]any{"mls": message}}
	m.Stamp(time.Now())
	return m.AppendMsgpack(make([]byte, 0, len(message)+256))
}

// unpack takes it out again.
func (l *groupLayer) unpack(data []byte) ([]byte, error) {
	if l.name != layerEnvelope {
		return data, nil
	}
	m, err := envelope.DecodeMsgpack(data, envelope.Limits{})
	if err != nil {
		return nil, err
	}
	payload, ok := m.Payload.(map[string]any)
	if !ok {
		return nil, errors.New("an envelope without a payload")
	}
	message, ok := payload["mls"].([]byte)
	if !ok {
		return nil, errors.New("an envelope without an MLS message")
	}
	return message, nil
}

func (l *groupLayer) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
