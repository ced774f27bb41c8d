package seal

import "fmt"

// Reason is why a file is not sealed.
type Reason string

// The reasons. All but Denied are about the file, not about its bytes.
const (
	NotRegular Reason = "it is not a regular file"
	SetID      Reason = "it is set-user-ID or set-group-ID"
	Busy       Reason = "it is open for writing"
	Changing   Reason = "it changes while it is read"
	TooLarge   Reason = "it is over the size limit"
	Unreadable Reason = "it can't be read"
	Denied     Reason = "its bytes are refused"
)

// Refusal says that a file is not to be sealed. Any other error of this package
// is a failure of jail or its disk; neither lets anything execute.
type Refusal struct {
	Reason Reason
	Err    error // what Options.Refuse or the kernel said; may be nil
}

func (r *Refusal) Error() string {
	if r.Err == nil {
		return string(r.Reason)
	}
	return fmt.Sprintf("%s: %v", r.Reason, r.Err)
}

func (r *Refusal) Unwrap() error { return r.Err }
