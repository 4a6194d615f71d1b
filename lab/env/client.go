package env

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

func (r *reader) client() {
	c := &r.env.Client
	c.GOMAXPROCS = runtime.GOMAXPROCS(0)
	c.GOGC, c.GOMEMLIMIT = gcPercent(), memoryLimit(debug.SetMemoryLimit(-1))
	if c.NoFile = r.sys.nofile; c.NoFile == nil {
		r.miss("client.nofile", "this system does not tell")
	}
	c.Somaxconn = parsed(r, "client.somaxconn", "proc/sys/net/core/somaxconn", parseInt)
	if p := parsed(r, "client.port_range", "proc/sys/net/ipv4/ip_local_port_range", parsePortRange); p != nil {
		c.PortRange = *p
	}
}

// gcPercent reads GOGC as in force: debug.SetGCPercent could only read it by changing it.
func gcPercent() string {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if v := s[0].Value; v.Kind() == metrics.KindUint64 && v.Uint64() <= math.MaxInt32 {
		return strconv.FormatUint(v.Uint64(), 10)
	}
	return "off"
}

// memoryLimit writes a limit as the variable GOMEMLIMIT takes it.
func memoryLimit(bytes int64) string {
	if bytes == math.MaxInt64 {
		return "off"
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

func parsePortRange(s string) (string, error) {
	f := strings.Fields(s)
	if len(f) != 2 {
		return "", fmt.Errorf("port range %q: %w", s, errMalformed)
	}
	lo, err := parseInt(f[0])
	if err != nil {
		return "", err
	}
	hi, err := parseInt(f[1])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%d", lo, hi), nil
}
