package plan

import (
	"debug/elf"
	"path/filepath"
	"strings"
)

// libraries lets a program outside of /usr read the directories in which it says
// that its libraries are (DT_RUNPATH), and theirs in turn: in a package store, such
// as Nix's, they are anywhere.
func (c *compiler) libraries(a Allowed) {
	queue, seen := []string{a.Path}, map[string]bool{}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		dirs, needed := runPath(path)
		for _, dir := range dirs {
			c.reads(dir, a)
			for _, name := range needed {
				if real, exists, err := c.view.real(filepath.Join(dir, name)); err == nil && exists {
					queue = append(queue, real)
				}
			}
		}
	}
}

// runPath reads where an ELF file looks for its libraries, and their names.
func runPath(path string) (dirs, needed []string) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		lists, _ := f.DynString(tag)
		for _, list := range lists {
			for _, dir := range filepath.SplitList(list) {
				dir = strings.NewReplacer("${ORIGIN}", filepath.Dir(path), "$ORIGIN", filepath.Dir(path)).Replace(dir)
				if filepath.IsAbs(dir) {
					dirs = append(dirs, filepath.Clean(dir))
				}
			}
		}
	}
	needed, _ = f.ImportedLibraries()
	return dirs, needed
}
