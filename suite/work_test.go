package suite

import "testing"

func TestCasesOfTheBenchmarkTransport(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]work{
		"call/0B":         {},
		"call/64KiB":      {note: 64 << 10},
		"cold/32B":        {note: 32, cold: true},
		"result/1MiB":     {blob: 1 << 20},
		"tools_list/1000": {tools: 1000},
		"read/empty":      {empty: true},
	} {
		want.name = name
		if got, err := transportWork(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	const expected = "; expected one such as call/32B, call/4KiB, cold/32B, result/1MiB or tools_list/50"
	for name, want := range map[string]string{
		"":                `case "": it is none of them`,
		"read":            `case "read": it is none of them`,
		"call":            `case "call": size "": want one such as 32B or 4KiB, up to 64 KiB`,
		"call/65KiB":      `case "call/65KiB": size "65KiB": want one such as 32B or 4KiB, up to 64 KiB`,
		"call/-1B":        `case "call/-1B": size "-1B": want one such as 32B or 4KiB, up to 64 KiB`,
		"call/9999999KiB": `case "call/9999999KiB": size "9999999KiB": want one such as 32B or 4KiB, up to 64 KiB`,
		"result/0B":       `case "result/0B": size 0`,
		"result/2MiB":     `case "result/2MiB": size "2MiB": want one such as 32B or 4KiB, up to 1024 KiB`,
		"tools_list/0":    `case "tools_list/0": 0 tools: want 1 to 1000`,
		"tools_list/1001": `case "tools_list/1001": 1001 tools: want 1 to 1000`,
		"tools_list/x":    `case "tools_list/x": strconv.Atoi: parsing "x": invalid syntax`,
	} {
		if _, err := transportWork(name); err == nil || err.Error() != want+expected {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want+expected)
		}
	}
}

func TestDigestCases(t *testing.T) {
	t.Parallel()
	if n, err := digestBytes("digest/4KiB"); n != 4096 || err != nil {
		t.Error(n, err)
	}
	for _, name := range []string{"call/32B", "digest/x", "digest"} {
		if _, err := digestBytes(name); err == nil {
			t.Errorf("took %q", name)
		}
	}
}
