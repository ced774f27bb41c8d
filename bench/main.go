// Command bench measures what jail costs: how long a command takes to start in it, and how much
// slower common work runs there, both against the same command bare.
//
//	go run ./bench [-n ROUNDS] [-json] [-jail FILE]
//
// Contenders take turns within each round, so that whatever else the machine does meets them all
// alike. Numbers are medians with quartiles; a ratio is the median of the rounds' own ratios to
// bare. Nothing here fails because a number is bad.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report is everything one run found out.
type report struct {
	Kernel string  `json:"kernel"`
	CPUs   int     `json:"cpus"`
	Go     string  `json:"go"`
	Tables []table `json:"tables"`
}

// table compares contenders at one command.
type table struct {
	Command string `json:"command"`
	Rows    []row  `json:"rows"`
}

func main() {
	rounds := flag.Int("n", 200, "rounds of start-up; the work takes a twentieth of them")
	asJSON := flag.Bool("json", false, "print JSON")
	jail := flag.String("jail", "jail", "the binary to measure")
	flag.Parse()
	if err := run(*jail, *rounds, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

func run(jail string, rounds int, asJSON bool) error {
	jail, err := filepath.Abs(jail)
	if err != nil {
		return err
	}
	p, err := newPlace()
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.root)

	r := report{Kernel: kernel(), CPUs: runtime.NumCPU(), Go: runtime.Version()}
	list, err := contests(p, jail, rounds)
	if err != nil {
		return err
	}
	for _, c := range list {
		t, err := p.compare(c)
		if err != nil {
			return err
		}
		r.Tables = append(r.Tables, t)
	}
	return r.print(os.Stdout, asJSON)
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func (r report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	fmt.Fprintf(w, "Linux %s, %d CPUs, %s\n", r.Kernel, r.CPUs, r.Go)
	for _, t := range r.Tables {
		if err := t.print(w); err != nil {
			return err
		}
	}
	return nil
}

func (t table) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s (%d rounds)\n", t.Command, t.Rows[0].Rounds)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "median ms\tquartiles\tx bare\t")
	for _, r := range t.Rows {
		fmt.Fprintf(tw, "%.2f\t%.2f-%.2f\t%.2f\t  %s\n", r.Median, r.Q1, r.Q3, r.Ratio, r.Name)
	}
	return tw.Flush()
}
