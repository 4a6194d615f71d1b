package receipt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
)

// A log is the segment files of a folder, open for one writer. Nothing in it is ever changed. Its methods are called by
// one goroutine at a time.
type log struct {
	files files
	dir   string
	sync  bool  // each append survives a power cut
	most  int64 // bytes of a segment
	lock  io.Closer

	current file
	name    string
	size    int64 // of the current segment
	broken  error // why nothing can be appended any more
}

// A place is where a group's record stands.
type place struct {
	segment string
	offset  int64
}

// A Damage is a log that can't be opened: something other than a torn end is wrong with it.
type Damage struct {
	File   string
	Offset int64
	Reason error
}

// Error returns the sentence.
func (d *Damage) Error() string {
	return fmt.Sprintf("log damaged: %s at byte %d: %v; restore the file from a copy, nothing was changed", d.File, d.Offset, d.Reason)
}

// Unwrap returns the reason.
func (d *Damage) Unwrap() error { return d.Reason }

const segmentSuffix = ".log"

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// lockLog makes the folder if there is none and locks it.
func lockLog(fs files, dir string) (io.Closer, error) {
	if err := fs.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("log %s: %w", dir, err)
	}
	if err := fs.SyncDir(parent(dir)); err != nil {
		return nil, fmt.Errorf("log %s: %w", dir, err)
	}
	lock, err := fs.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", dir, err)
	}
	return lock, nil
}

// A visitor is told of each record of a log, in order.
type visitor interface {
	group(g *group, at place) error
	sigs(first uint64, sigs [][]byte) error
}

// scan reads a folder's segments in order. It returns the last one's name and how much of it holds whole records; what is
// behind that was torn by a cut. Everything else that is wrong is a *Damage.
func scan(fs files, dir string, v visitor) (last string, good, torn int64, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", 0, 0, err
	}
	var segments []string
	for _, n := range names {
		if strings.HasSuffix(n, segmentSuffix) {
			segments = append(segments, n)
		}
	}
	next := uint64(0)
	for i, name := range segments {
		text, err := fs.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", 0, 0, err
		}
		good, err := scanSegment(name, text, &next, i == len(segments)-1, v)
		if err != nil {
			return "", 0, 0, err
		}
		if i == len(segments)-1 {
			return name, good, int64(len(text)) - good, nil
		}
	}
	return "", 0, 0, nil
}

// scanSegment reads one segment; next is the seq that its first group must have, and is moved on.
func scanSegment(name string, text []byte, next *uint64, last bool, v visitor) (good int64, err error) {
	damage := func(at int, err error) error { return &Damage{name, int64(at), err} }
	if err := checkHead(name, text, *next); err != nil {
		if last && torn(text) {
			return 0, nil // made, and cut before anything in it was whole
		}
		return 0, damage(0, err)
	}
	for at := segmentHead; at < len(text); {
		r, err := readRecord(text[at:])
		if err != nil {
			if last && torn(text[at:]) {
				return int64(at), nil
			}
			return 0, damage(at, err)
		}
		if err := visit(r, place{name, int64(at)}, next, v); err != nil {
			return 0, damage(at, err)
		}
		at += r.size
	}
	return int64(len(text)), nil
}

// checkHead checks a segment's first bytes.
func checkHead(name string, text []byte, next uint64) error {
	if len(text) < segmentHead || string(text[:8]) != segmentMagic {
		return errors.New("no segment's head")
	}
	if first := binary.LittleEndian.Uint64(text[8:]); first != next || name != segmentName(first) {
		return fmt.Errorf("the segment starts at seq %d, want %d", first, next)
	}
	return nil
}

func visit(r record, at place, next *uint64, v visitor) error {
	if r.kind == kindSigs {
		first, sigs, err := readSigs(r.payload)
		if err != nil {
			return err
		}
		if first >= *next {
			return fmt.Errorf("signatures of seq %d stand before it", first)
		}
		return v.sigs(first, sigs)
	}
	g, err := readGroup(r.payload)
	if err != nil {
		return err
	}
	if g.before.size != *next {
		return fmt.Errorf("the group starts at seq %d, want %d", g.before.size, *next)
	}
	*next += uint64(len(g.envelopes))
	return v.group(g, at)
}

// resume opens the segment that a scan ended in, and cuts off what is not good. That is synced: if the next segment were
// begun first, a torn end in this one would come back as damage.
func (l *log) resume(name string, good, torn int64) error {
	f, err := l.files.Open(filepath.Join(l.dir, name), false)
	if err != nil {
		return err
	}
	if torn > 0 {
		if err := f.Truncate(good); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Sync(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	l.current, l.name, l.size = f, name, good
	return nil
}

// append writes records as one, and syncs them. next is the seq of the first group in them, which names a new segment. An
// error means that nothing of them is there, or that the log takes nothing any more.
func (l *log) append(records []byte, next uint64) (place, error) {
	if l.broken != nil {
		return place{}, refuse(Unavailable, "the log is closed to writing: %v", l.broken)
	}
	// A segment that holds signatures alone is not followed by another: both would have the name of the same seq.
	if l.current == nil || l.size >= l.most && l.name != segmentName(next) {
		if err := l.roll(next); err != nil {
			return place{}, refusalOf(err, "a new segment")
		}
	}
	if l.size == 0 {
		records = append(segmentHeader(next), records...)
	}
	at := place{l.name, l.size}
	if at.offset == 0 {
		at.offset = int64(segmentHead)
	}
	n, err := l.current.Write(records)
	if err != nil {
		if cut := l.current.Truncate(l.size); cut != nil && n > 0 {
			l.broken = fmt.Errorf("after a write that failed (%v), the segment could not be cut: %w", err, cut)
		}
		return place{}, refusalOf(err, "the log")
	}
	if l.sync {
		if err := l.current.Sync(); err != nil {
			// What a failed sync left on the disk is not known, and asking again would not tell (the kernel forgets the error).
			l.broken = fmt.Errorf("a sync failed: %w; restart to read what is there", err)
			return place{}, refusalOf(l.broken, "the log")
		}
	}
	l.size += int64(len(records))
	return at, nil
}

func segmentHeader(first uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte(segmentMagic), first)
}

// roll starts a new segment. Its name is synced here, its head with the first record.
func (l *log) roll(next uint64) error {
	if l.current != nil {
		if err := l.current.Close(); err != nil {
			return err
		}
		l.current = nil
	}
	name := segmentName(next)
	f, err := l.files.Open(filepath.Join(l.dir, name), true)
	if err != nil {
		return err
	}
	if l.sync {
		if err := l.files.SyncDir(l.dir); err != nil {
			l.broken = fmt.Errorf("the folder's sync failed: %w; restart to read what is there", err)
			return errors.Join(l.broken, f.Close())
		}
	}
	l.current, l.name, l.size = f, name, 0
	return nil
}

// read returns the group at a place.
func (l *log) read(at place) (*group, error) {
	f := l.current
	if at.segment != l.name {
		var err error
		if f, err = l.files.Open(filepath.Join(l.dir, at.segment), false); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	head := make([]byte, recordHead)
	if _, err := f.ReadAt(head, at.offset); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n > maxRecord {
		return nil, &Damage{at.segment, at.offset, errRecord}
	}
	whole := make([]byte, recordHead+int(n))
	if _, err := f.ReadAt(whole, at.offset); err != nil {
		return nil, err
	}
	r, err := readRecord(whole)
	if err != nil {
		return nil, &Damage{at.segment, at.offset, err}
	}
	return readGroup(r.payload)
}

func (l *log) close() error {
	var errs []error
	if l.current != nil {
		errs = append(errs, l.current.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

// refusalOf says whether the disk is full or something else is wrong.
func refusalOf(err error, what string) error {
	r := refuse(Unavailable, "%s can't be written: %v", what, err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, errDiskFull) {
		r = refuse(DiskFull, "%s can't grow: %v; make room, then try again", what, err)
	}
	r.cause = err
	return r
}

// errDiskFull is ENOSPC of file layers that are not the machine's.
var errDiskFull = errors.New("no space left")
