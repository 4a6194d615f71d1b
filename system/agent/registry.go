package agent

import (
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"
)

const shards = 64

// A registry knows which process has which name. Taking a name is atomic, and only the process that has it gives it back.
type registry struct {
	seed   maphash.Seed
	epoch  atomic.Uint64
	count  atomic.Int64
	shards [shards]shard
}

type shard struct {
	mu    sync.RWMutex
	names map[string]*process
	peak  int // since names was made
	_     [64 - 24 - 16]byte
}

func newRegistry() *registry { return &registry{seed: maphash.MakeSeed()} }

func (r *registry) shard(name string) *shard {
	return &r.shards[maphash.String(r.seed, name)%shards]
}

// add takes p's name for it and gives it its epoch. It returns false when another process has the name.
func (r *registry) add(p *process) bool {
	s := r.shard(p.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]*process)
	}
	if _, taken := s.names[p.name]; taken {
		return false
	}
	p.epoch = r.epoch.Add(1)
	s.names[p.name] = p
	s.peak = max(s.peak, len(s.names))
	r.count.Add(1)
	return true
}

// remove gives p's name back.
func (r *registry) remove(p *process) {
	s := r.shard(p.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[p.name] != p {
		return
	}
	delete(s.names, p.name)
	r.count.Add(-1)
	// A Go map keeps the memory of its largest size. What a crowd left behind is given back once the crowd is gone.
	if len(s.names) == 0 && s.peak > 64 {
		s.names, s.peak = nil, 0
	}
}

func (r *registry) get(name string) *process {
	s := r.shard(name)
	s.mu.RLock()
	p := s.names[name]
	s.mu.RUnlock()
	return p
}

// all yields every process that is there throughout, shard by shard.
func (r *registry) all() iter.Seq[*process] {
	return func(yield func(*process) bool) {
		for i := range r.shards {
			s := &r.shards[i]
			s.mu.RLock()
			ps := make([]*process, 0, len(s.names))
			for _, p := range s.names {
				ps = append(ps, p)
			}
			s.mu.RUnlock()
			for _, p := range ps {
				if !yield(p) {
					return
				}
			}
		}
	}
}
