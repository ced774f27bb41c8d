package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// reportHost is where a report was made.
type reportHost struct {
	Name    string `json:"name"`
	Machine string `json:"machine"`
	Kernel  string `json:"kernel"`
	UID     int    `json:"uid"`
}

func hostOf(p plan.Plan) reportHost {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails only for a bad pointer
	return reportHost{
		Name: unix.ByteSliceToString(u.Nodename[:]), Machine: unix.ByteSliceToString(u.Machine[:]),
		Kernel: unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Version[:]), UID: p.UID,
	}
}

// layersOf lists the layers that hold a promise here.
func layersOf(p plan.Plan) []string {
	layers := []string{}
	for _, pr := range p.Promises {
		for _, by := range pr.By {
			if !slices.Contains(layers, by) {
				layers = append(layers, by)
			}
		}
	}
	return layers
}

// reportNetwork is what the network rules come to. A list that is null restricts
// nothing.
type reportNetwork struct {
	Connect []uint16 `json:"connect"`
	Bind    []uint16 `json:"bind"`
	UDP     bool     `json:"udp"`
	UnixAny bool     `json:"unix_any"`
	Unix    []string `json:"unix"` // sockets of the host
}

func networkOf(p plan.Plan) reportNetwork {
	n := p.Network
	return reportNetwork{
		Connect: portsOf(n.Connect.Set, n.Connect.List), Bind: portsOf(n.Bind.Set, n.Bind.List),
		UDP: n.UDP || !n.Restricted(), UnixAny: n.UnixAny, Unix: append([]string{}, p.Unix...),
	}
}

func portsOf(set bool, list []uint16) []uint16 {
	if !set {
		return nil
	}
	return append([]uint16{}, list...)
}

// digest is the SHA-256 of the report as compact JSON, before it says where and by
// which jail it was made, and what of one command: two hosts on which the same rules
// amount to the same have the same.
func (r report) digest() string {
	r.Jail, r.Host, r.Digest, r.Command, r.Requirements = "", reportHost{}, "", nil, nil
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and lists of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
