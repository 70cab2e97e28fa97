package main

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"slices"
	"testing"
)

func TestReleasedCommandIsStrippedAndContainsItsCommit(t *testing.T) {
	command, info, err := build(t.Context(), "../..", filepath.Join(t.TempDir(), "leasehold"), platform{"linux", "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	of, err := elf.NewFile(bytes.NewReader(command.content))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range of.Sections {
		if slices.Contains([]string{".symtab", ".strtab", ".debug_info", ".zdebug_info", ".debug_line"}, s.Name) {
			t.Errorf("it has %s, of %d bytes", s.Name, s.Size)
		}
	}
	if info.Main.Path != mainModule || len(info.Deps) == 0 || len(info.Settings) == 0 {
		t.Errorf("it does not know what it was built from: %v", info)
	}
}
