package demo

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLeftoversOfKilledDemosAreRemoved(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	old := time.Now().Add(-time.Hour)
	folder := func(name string) string {
		dir := filepath.Join(in, name)
		if err := os.MkdirAll(filepath.Join(dir, "kafka"), 0o750); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	age := func(dir string) {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	dead, alive, young, other := folder("feira-demo-1"), folder("feira-demo-2"), folder("feira-demo-3"), folder("somebody-else")
	held, err := lock(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	age(dead)
	age(alive)
	age(other)
	removeLeftovers(in)
	for dir, want := range map[string]bool{dead: false, alive: true, young: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", filepath.Base(dir), err == nil, want)
		}
	}
}
