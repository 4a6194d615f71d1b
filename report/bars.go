package report

import "toll/lab/result"

// A bar is stacked shares of one row.
type bar struct {
	Name, Role, Text string
	Shares           []share
}

type share struct {
	Name, Text string
	Key        int
	At, Width  string
}

// stack lays out what each row's shares add up to, on an axis that all bars have in common.
func stack(bars []bar, values [][]float64, keys []string) []bar {
	most := 0.0
	for _, v := range values {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		most = max(most, sum)
	}
	for i := range bars {
		at, sum := 0.0, 0.0
		for j, x := range values[i] {
			if w := 100 * x / most; x > 0 && most > 0 {
				bars[i].Shares = append(bars[i].Shares, share{keys[j], digits(x), j, percent(at), percent(w)})
				at += w
			}
			sum += x
		}
		bars[i].Text = digits(sum)
	}
	return bars
}

func cpuBars(rows []*result.Row) (bars []bar, keys []string) {
	all := []string{"client", "server", "backend"}
	var values [][]float64
	used := make([]bool, len(all))
	for _, r := range rows {
		v := make([]float64, len(all))
		for i, p := range []*float64{r.Client.CPU, serverCost(r, cpuOf), nil} {
			if i == 2 && r.Backend != nil {
				p = r.Backend.CPU
			}
			if p != nil {
				v[i], used[i] = *p, true
			}
		}
		if v[0]+v[1]+v[2] > 0 {
			bars, values = append(bars, bar{Name: name(r), Role: r.Role}), append(values, v)
		}
	}
	for i, u := range used {
		if u {
			keys = append(keys, all[i])
		}
	}
	return stack(bars, values, all), keys
}

func partBars(rows []*result.Row) (bars []bar, keys []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		for _, k := range partNames(r) {
			if !seen[k] {
				seen[k], keys = true, append(keys, k)
			}
		}
	}
	var values [][]float64
	for _, r := range rows {
		if len(r.Parts) == 0 {
			continue
		}
		v := make([]float64, len(keys))
		for i, k := range keys {
			v[i] = r.Parts[k].Mean
		}
		bars, values = append(bars, bar{Name: name(r), Role: r.Role}), append(values, v)
	}
	return stack(bars, values, keys), keys
}
