package report

// An ink colours text for a terminal, or leaves it as it is.
type ink bool

func (k ink) paint(code, text string) string {
	if !k {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (k ink) warning(text string) string { return k.paint("33", text) }
func (k ink) bad(text string) string     { return k.paint("31", text) }

// verdict colours a ratio whose difference from the baseline was shown: -1 faster, 1 slower.
func (k ink) verdict(text string, shown int) string {
	switch shown {
	case -1:
		return k.paint("32", text)
	case 1:
		return k.paint("31", text)
	}
	return text
}
