package curve

import (
	"encoding/binary"
	"math/bits"
)

// recode gives a little-endian scalar, of 16 or 32 bytes and at most 255 bits, as signed digits from the lowest place up:
// each is odd and less than 2^(w-1), and any w places in a row have one at most. Its time depends on the scalar.
func recode(scalar []byte, w uint, emit func(at int, digit int8)) {
	var words [6]uint64
	for i := range len(scalar) / 8 {
		words[i] = binary.LittleEndian.Uint64(scalar[8*i:])
	}
	window := uint64(1)<<w - 1
	carry := uint64(0)
	for at := uint(0); at <= uint(8*len(scalar)); {
		word, shift := at/64, at%64
		v := words[word]>>shift | words[word+1]<<1<<(63-shift)
		switch v & 1 {
		case carry: // even with the carry
			if carry == 1 {
				at++
			} else {
				at += uint(bits.TrailingZeros64(v | 1<<63)) // 63 when there is none in sight
			}
			continue
		}
		v = v&window + carry
		carry = 0
		if v > window/2 {
			v -= window + 1
			carry = 1
		}
		emit(int(at), int8(v))
		at += w
	}
}

// A naf is a scalar as recode gives it, by place.
type naf struct {
	digits [257]int8
	size   int // digits before it may be other than zero
}

func (n *naf) set(scalar []byte, w uint) {
	recode(scalar, w, func(at int, digit int8) { n.digits[at], n.size = digit, at+1 })
}

// A radix32 is a scalar below 2^255 as 52 signed digits of [-16, 16], made in constant time.
type radix32 [52]int8

func (r *radix32) set(scalar *[32]byte) {
	var words [5]uint64
	for i := range 4 {
		words[i] = binary.LittleEndian.Uint64(scalar[8*i:])
	}
	carry := int8(0)
	for i := range 52 {
		at := uint(5 * i)
		v := words[at/64] >> (at % 64)
		if at%64 > 59 {
			v |= words[at/64+1] << (64 - at%64)
		}
		d := int8(v&31) + carry
		carry = (d + 16) >> 5
		r[i] = d - carry<<5
	}
}
