package contender

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFolder bounds what Build copies.
const maxFolder = 512 << 20

// Build runs the manifest's build command, once for each state of its folder: the folder is copied into the cache, below a
// name that holds its digest, and built there, so that a build never changes the sources and an older build is not taken
// for the present one. For an image it pulls it. log gets what the commands print.
func Build(ctx context.Context, m Manifest, log io.Writer) error {
	switch {
	case m.Image != "":
		return pull(ctx, m, log)
	case len(m.Build) == 0:
		return nil
	}
	for _, program := range m.Needs {
		if _, err := exec.LookPath(program); err != nil {
			return missing("%s: needs %s, which is not in PATH", m.Name, program)
		}
	}
	dir, err := m.built()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		fmt.Fprintf(log, "%s: built already, in %s\n", m.Name, dir)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("%s: cache: %w", m.Name, err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
		return fmt.Errorf("%s: cache: %w", m.Name, err)
	}
	defer os.RemoveAll(work)
	if err := copyFolder(work, m.Dir); err != nil {
		return fmt.Errorf("%s: copying its folder: %w", m.Name, err)
	}
	if err := m.build(ctx, work, log); err != nil {
		return err
	}
	err = os.Rename(work, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil // another build of the same was faster
	}
	if err != nil {
		return fmt.Errorf("%s: cache: %w", m.Name, err)
	}
	fmt.Fprintf(log, "%s: built, in %s\n", m.Name, dir)
	return nil
}

func (m Manifest) build(ctx context.Context, dir string, log io.Writer) error {
	s := Spec{Name: m.Name, Command: m.Build, Dir: dir}
	program, err := s.program()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, m.Build[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, log, log, time.Second
	cmd.Env = append(os.Environ(), m.spec().Env...)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("%s: build %s: %w", m.Name, strings.Join(m.Build, " "), err)
	}
	return nil
}

func pull(ctx context.Context, m Manifest, log io.Writer) error {
	runtime, err := containerRuntime(ctx, m.Name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, runtime, "pull", m.Image)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: pulling %s: %w", m.Name, m.Image, err)
	}
	return nil
}

// built returns the folder in which the present state of the sources is built, there or not.
func (m Manifest) built() (string, error) {
	cache := m.Cache
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%s: where to build: %w", m.Name, err)
		}
		cache = filepath.Join(user, "toll", "contenders")
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", m.Build)
	err := walkFolder(m.Dir, func(rel string, info fs.FileInfo) error {
		fmt.Fprintf(sum, "%q %v %d\n", rel, info.Mode(), info.Size())
		return eachFile(filepath.Join(m.Dir, rel), info, sum)
	})
	if err != nil {
		return "", fmt.Errorf("%s: reading its folder: %w", m.Name, err)
	}
	// Two contenders of one program are built once.
	return filepath.Join(cache, filepath.Base(m.Dir)+"-"+hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

// eachFile writes a file's content, or a link's target, to w; nothing for a folder.
func eachFile(path string, info fs.FileInfo, w io.Writer) error {
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(path)
		io.WriteString(w, target)
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// notSources are folders that tools put beside sources and that are no part of them.
func notSources() []string {
	return []string{".git", ".venv", "__pycache__", "node_modules", "target"}
}

// walkFolder visits what is in a folder, in lexical order, itself and what is no source left out.
func walkFolder(dir string, visit func(rel string, info fs.FileInfo) error) error {
	var size int64
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if d.IsDir() && slices.Contains(notSources(), d.Name()) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > maxFolder {
			return fmt.Errorf("more than %d MiB; a contender's folder holds its sources", maxFolder>>20)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel), info)
	})
}

func copyFolder(to, from string) error {
	return walkFolder(from, func(rel string, info fs.FileInfo) error {
		src, dst := filepath.Join(from, rel), filepath.Join(to, rel)
		switch {
		case info.IsDir():
			return os.Mkdir(dst, 0o700)
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(src)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		case !info.Mode().IsRegular():
			return nil
		}
		f, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o200)
		if err != nil {
			return err
		}
		return errors.Join(eachFile(src, info, f), f.Close())
	})
}
