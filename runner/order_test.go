package runner

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The layout is that of runner.h.
func TestBytes(t *testing.T) {
	o := Order{
		Path: "/run/x", Words: []string{"sh", "a\x00b"},
		Layer: Layer{Ruleset: 7, Filter: []byte("12345678abcdefgh"), Limits: []Limit{{10, 1 << 40}}, Drop: []string{"*_KEY"}},
	}
	b := o.Bytes()
	var head []uint32
	for i := range 6 {
		head = append(head, binary.NativeEndian.Uint32(b[4*i:]))
	}
	if d := cmp.Diff([]uint32{0, 7, 1, 2, 2, 1}, head); d != "" {
		t.Error(d)
	}
	if r, v := binary.NativeEndian.Uint64(b[24:]), binary.NativeEndian.Uint64(b[32:]); r != 10 || v != 1<<40 {
		t.Errorf("limit %d: %d", r, v)
	}
	// A NUL ends a string: what follows would be taken for the next one.
	if got, want := string(b[40:]), "12345678abcdefgh/run/x\x00sh\x00a\x00*_KEY\x00"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestSay(t *testing.T) {
	b := string(Order{Say: "no", Status: 3, Layer: Layer{Ruleset: -1}}.Bytes())
	if b[0] != 3 || !strings.HasPrefix(b[4:], "\xff\xff\xff\xff") || !strings.HasSuffix(b, "no\x00") {
		t.Errorf("%q", b)
	}
}
