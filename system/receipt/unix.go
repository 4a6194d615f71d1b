package receipt

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// ListenUnix listens on a socket that only this user can reach: 0600 in a folder of mode 0700, which is made if there is none.
// A socket that nobody answers on is replaced, another file is not.
func ListenUnix(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	} else if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("socket %s: others can write to its folder (mode %#o); chmod 700 it", path, info.Mode().Perm())
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 && runtime.GOOS != "windows" {
			return nil, fmt.Errorf("socket %s: it is another kind of file", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("socket %s: in use", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("socket %s: %w", path, err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
