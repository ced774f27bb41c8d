package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"jail/mounts"
	"jail/plan"
)

// attachment asks init to put the directory of this run's seals in place.
type attachment struct {
	Dir []byte // a path need not be UTF-8
	ID  plan.ID
}

// attach is the parent's side.
func attach(hand *os.File, dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	text, err := json.Marshal(attachment{Dir: []byte(dir), ID: plan.ID{Dev: st.Dev, Ino: st.Ino}})
	if err != nil {
		return err
	}
	if _, err := hand.Write(text); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := hand.Read(answer)
	switch {
	case err != nil:
		return err
	case string(answer[:n]) != attached:
		return errors.New(string(answer[:n]))
	}
	return nil
}

const attached = "attached"

// serveAttach is init's side: once, for the parent.
func serveAttach(l *mounts.Layout) {
	hand := os.NewFile(handFD, "hand")
	defer hand.Close()
	text := make([]byte, 2*unix.PathMax)
	n, err := hand.Read(text)
	if err != nil || n == 0 {
		return
	}
	var a attachment
	if err = json.Unmarshal(text[:n], &a); err == nil {
		err = l.AttachSeals(string(a.Dir), a.ID)
	}
	answer := attached
	if err != nil {
		answer = err.Error()
	}
	fmt.Fprint(hand, answer)
}
