package cli

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strconv"

	"toll/lab"
)

// A sampleFile keeps every raw latency of a run, so that each figure of its result can be derived again.
type sampleFile struct {
	file *os.File
	zip  *gzip.Writer
	buf  *bufio.Writer
}

func newSampleFile(name string) (*sampleFile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	z := gzip.NewWriter(f)
	s := &sampleFile{f, z, bufio.NewWriter(z)}
	_, err = s.buf.WriteString("case,phase,concurrency,contender,role,round,block,slot,ns\n")
	return s, err
}

// add writes one contender's latencies of one round; it is called between rounds.
func (s *sampleFile) add(x lab.Samples) error {
	prefix := fmt.Sprintf("%s,%s,%d,%s,%s,%d,", x.Setting.Case, x.Setting.Phase, x.Setting.Concurrency, x.Entry.Contender.Name, x.Entry.Role, x.Setting.Round)
	var line []byte
	for _, st := range x.Stretches {
		head := fmt.Sprintf("%s%d,%d,", prefix, st.Block+1, st.Slot)
		for _, ns := range st.Raw {
			line = append(append(line[:0], head...), strconv.FormatInt(ns, 10)...)
			if _, err := s.buf.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sampleFile) close() error {
	if err := errors.Join(s.buf.Flush(), s.zip.Close(), s.file.Close()); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}
