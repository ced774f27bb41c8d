package plan

import "encoding/json"

// wire is a Plan in words, for tests of what enforces one: the grants are not exported,
// so that nobody makes a plan but Compile. The stage gets only what was compiled of it.
type wire struct {
	Plan   plain
	Grants []Grant
}

type plain Plan // without methods, so that encoding does not recurse

// MarshalJSON writes the whole plan.
func (p Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{Plan: plain(p), Grants: p.grants})
}

// UnmarshalJSON reads what MarshalJSON wrote. The bytes must come from a
// descriptor that nobody else can write.
func (p *Plan) UnmarshalJSON(text []byte) error {
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*p = Plan(w.Plan)
	p.grants = w.Grants
	return nil
}
