package receipt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// tileWidth is how many hashes, or entries, a full tile holds (C2SP tlog-tiles).
const tileWidth = 256

// tilePath is the path of tile n of a level, "entries" for the entries'; width is tileWidth, or less for a partial one.
func tilePath(level string, n uint64, width int) string {
	p := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		p = fmt.Sprintf("x%03d/%s", n%1000, p)
	}
	if width < tileWidth {
		p += ".p/" + strconv.Itoa(width)
	}
	return "tile/" + level + "/" + p
}

// PublishTiles writes a log's tiles, entry bundles and checkpoint (C2SP tlog-tiles) below out, as static files. checkpoint is
// a signed one; the log must hold all of its tree. Full tiles that are there already are left alone.
func PublishTiles(dir, out string, checkpoint []byte) error {
	lines := splitLines(checkpoint, 2)
	if lines == nil {
		return errors.New("publishing: the checkpoint has no size")
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil {
		return fmt.Errorf("publishing: the checkpoint's size: %w", err)
	}
	p := &publisher{out: out, size: size}
	if _, _, _, err := scan(osFiles{}, dir, p); err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	if p.n < size {
		return fmt.Errorf("publishing: the checkpoint is of %d entries, the log holds %d", size, p.n)
	}
	if err := p.finish(); err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	// The checkpoint comes last: whoever reads it finds its tiles.
	return replaceFile(filepath.Join(out, "checkpoint"), checkpoint)
}

// splitLines returns the first n lines, nil when there are not as many.
func splitLines(text []byte, n int) (lines []string) {
	from := 0
	for i, c := range text {
		if c == '\n' {
			lines = append(lines, string(text[from:i]))
			if from = i + 1; len(lines) == n {
				return lines
			}
		}
	}
	return nil
}

// A publisher makes tiles of a log that it is shown from the start.
type publisher struct {
	out    string
	size   uint64 // entries to publish
	n      uint64 // entries seen, at most size
	bundle []byte
	levels []level
}

// A level is the tile that is being filled, and how many are full.
type level struct {
	hashes []Hash
	full   uint64
}

func (p *publisher) sigs(uint64, [][]byte) error { return nil }

func (p *publisher) group(g *group, _ place) error {
	for i, e := range g.envelopes {
		if p.n == p.size {
			return nil
		}
		p.n++
		p.bundle = append(binary.BigEndian.AppendUint16(p.bundle, uint16(len(e))), e...)
		if p.n%tileWidth == 0 {
			if err := p.write("entries", p.n/tileWidth-1, tileWidth, p.bundle); err != nil {
				return err
			}
			p.bundle = p.bundle[:0]
		}
		if err := p.add(0, g.leaves[i]); err != nil {
			return err
		}
	}
	return nil
}

// add puts a hash into a level; a full tile's root is the next level's hash.
func (p *publisher) add(at int, h Hash) error {
	if at == len(p.levels) {
		p.levels = append(p.levels, level{})
	}
	l := &p.levels[at]
	if l.hashes = append(l.hashes, h); len(l.hashes) < tileWidth {
		return nil
	}
	if err := p.write(strconv.Itoa(at), l.full, tileWidth, tileBytes(l.hashes)); err != nil {
		return err
	}
	row := l.hashes
	for len(row) > 1 {
		row = appendParents(nil, row)
	}
	l.full++
	l.hashes = l.hashes[:0]
	return p.add(at+1, row[0])
}

// finish writes the partial tiles.
func (p *publisher) finish() error {
	if w := int(p.n % tileWidth); w > 0 {
		if err := p.write("entries", p.n/tileWidth, w, p.bundle); err != nil {
			return err
		}
	}
	for i, l := range p.levels {
		if w := len(l.hashes); w > 0 {
			if err := p.write(strconv.Itoa(i), l.full, w, tileBytes(l.hashes)); err != nil {
				return err
			}
		}
	}
	return nil
}

func tileBytes(hashes []Hash) []byte {
	out := make([]byte, 0, len(hashes)*sha256.Size)
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out
}

func (p *publisher) write(level string, n uint64, width int, data []byte) error {
	name := filepath.Join(p.out, filepath.FromSlash(tilePath(level, n, width)))
	if info, err := os.Stat(name); err == nil && info.Size() == int64(len(data)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return replaceFile(name, data)
}

// replaceFile writes a file in one step.
func replaceFile(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		os.Remove(tmp.Name())
		return err
	}
	return os.Rename(tmp.Name(), name)
}
