package runner_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/runner"
)

// parse reads an order as runner.c does.
func parse(t *testing.T, b []byte) (o runner.Order) {
	t.Helper()
	number := func(size int) uint64 {
		if len(b) < size {
			t.Fatal("the order is short")
		}
		head := b[:size]
		if b = b[size:]; size == 4 {
			return uint64(binary.NativeEndian.Uint32(head))
		}
		return binary.NativeEndian.Uint64(head)
	}
	text := func() string {
		s, rest, found := bytes.Cut(b, []byte{0})
		if !found {
			t.Fatal("a string has no end")
		}
		b = rest
		return string(s)
	}
	o.Status = uint8(number(4))
	o.Layer.Ruleset = int(int32(number(4)))
	limits, filter, words, patterns := number(4), number(4), number(4), number(4)
	for range limits {
		o.Layer.Limits = append(o.Layer.Limits, runner.Limit{Resource: int(number(8)), Value: number(8)})
	}
	for range filter * 8 {
		o.Layer.Filter = append(o.Layer.Filter, b[0])
		b = b[1:]
	}
	if o.Path = text(); o.Status != 0 {
		o.Say, o.Path = o.Path, ""
	}
	for range words {
		o.Words = append(o.Words, text())
	}
	for range patterns {
		o.Layer.Drop = append(o.Layer.Drop, text())
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
	return o
}

// FuzzOrder: what the supervisor writes is what the runner reads, whatever a
// script has in its first line and a file in its name.
func FuzzOrder(f *testing.F) {
	f.Add("", uint8(0), "/bin/sh", "sh\n-e\n./x", "*_KEY\nA*", -1, uint64(5), uint8(3))
	f.Add("no", uint8(126), "", "", "", 7, uint64(0), uint8(0))
	f.Fuzz(func(t *testing.T, say string, status uint8, path, words, drop string, ruleset int, limit uint64, filter uint8) {
		if strings.Contains(say+path+words+drop, "\x00") {
			return // none that comes from the kernel or from TOML has one
		}
		want := runner.Order{Status: status, Layer: runner.Layer{Ruleset: int(int32(ruleset))}}
		if want.Path = path; status != 0 {
			want.Say, want.Path = say, ""
		}
		if words != "" {
			want.Words = strings.Split(words, "\n")
		}
		if drop != "" {
			want.Layer.Drop = strings.Split(drop, "\n")
		}
		for i := range filter % 4 {
			want.Layer.Limits = append(want.Layer.Limits, runner.Limit{Resource: int(i), Value: limit + uint64(i)})
		}
		want.Layer.Filter = append(want.Layer.Filter, bytes.Repeat([]byte{filter, 0, 1, 0xff, 0, 0, 0, 2}, int(filter))...)
		if d := cmp.Diff(want, parse(t, want.Bytes())); d != "" {
			t.Error(d)
		}
	})
}
