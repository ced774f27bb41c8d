package cli

import (
	"fmt"

	"jail/rules"
)

// schema is `jail schema`.
func (a app) schema(args []string) int {
	if status, ok := a.parseOnly("schema", args, usageSchema); !ok {
		return status
	}
	text, err := rules.Schema()
	if err != nil {
		return a.fail(err, statusFailed)
	}
	fmt.Fprintf(a.stdout, "%s\n", text)
	return statusOK
}

const usageSchema = `jail schema

Print the JSON Schema (2020-12) of rule files. Editors that know it complete keys,
explain them and mark what is wrong. It is no proof: jail itself says more.

Exit status: 0; 2 usage.

Examples:
  jail schema > ~/.config/jail/schema.json
  sed -i '1i #:schema /home/me/.config/jail/schema.json' jail.toml  # taplo, Even Better TOML
`
